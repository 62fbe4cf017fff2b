/* Evaluation of guard programs: each kind of guard and each accessor on a call that it accepts and on one that it refuses, then many entries of
 * one function, then modules and trees of objects. A row has its lower bound beside it: the loads alone (guard_loads.h). */
#include "bench/guard_cases.h"
#include "bench/guard_loads.h"

#include <stdio.h>
#include <string.h>

/* One fact, accepted and refused. FIELD: offset of the word for fg_loads_field. */
#define FACT_AT(NAME, LOADS, FIELD, TEXT, HIT, MISS)                                                     \
    {NAME "/hit", fg_case_fact, fg_run_eval, LOADS, NULL, (int64_t)(FIELD), FG_CASE_HIT, TEXT, HIT},     \
    {                                                                                                    \
        NAME "/miss", fg_case_fact, fg_run_eval, LOADS, NULL, (int64_t)(FIELD), FG_CASE_MISS, TEXT, MISS \
    }
#define FACT(NAME, LOADS, TEXT, HIT, MISS) FACT_AT(NAME, LOADS, 0, TEXT, HIT, MISS)

#define ENTRIES(NAME, SETUP, LOADS, N)                                                    \
    {NAME "/" #N "/hit", SETUP, fg_run_eval, LOADS, NULL, N, FG_CASE_HIT, NULL, NULL},    \
    {                                                                                     \
        NAME "/" #N "/miss", SETUP, fg_run_eval, LOADS, NULL, N, FG_CASE_MISS, NULL, NULL \
    }

#define TREE(NAME, LOADS, N, OPTION)                                                               \
    {                                                                                              \
        "tree/" #N "/" NAME, fg_case_tree, fg_run_tree, LOADS, fg_idle_tree, N, OPTION, NULL, NULL \
    }
#define TREES(N)                                                                                                            \
    TREE("still", fg_loads_tree, N, FG_TREE_STILL), TREE("miss", fg_loads_tree, N, FG_TREE_STILL | FG_TREE_MISS),           \
        TREE("root_counts", fg_loads_tree, N, FG_TREE_ROOT_COUNTS), TREE("all_count", fg_loads_tree, N, FG_TREE_ALL_COUNT), \
        TREE("dicts/still", fg_loads_dicts, N, FG_TREE_DICTS | FG_TREE_STILL),                                              \
        TREE("dicts/miss", fg_loads_dicts, N, FG_TREE_DICTS | FG_TREE_MISS),                                                \
        TREE("dicts/root_counts", fg_loads_dicts, N, FG_TREE_DICTS | FG_TREE_ROOT_COUNTS),                                  \
        TREE("dicts/all_count", fg_loads_dicts, N, FG_TREE_DICTS | FG_TREE_ALL_COUNT)

#define ARRAY "tensor 'numpy' @'b:np.ndarray' keys=6 dtype=12 device=1:0 grad=0 layout=0 sizes=(4,8,) strides=(64,8,)"
#define TORCH "torch_state included=0 excluded=0 device=0 autograd=0 modes=0 disabled=0 dtype=0 autocast=0:0 present="

const fg_bench_row fg_bench_rows[] = {
    /* guards */
    FACT("guard/present", fg_loads_slot, "n0 = arg 0\nguard n0 present\n", "(5,)", "()"),
    FACT("guard/absent", fg_loads_slot, "n0 = arg 0\nguard n0 absent\n", "()", "(5,)"),
    FACT("guard/type_is", fg_loads_type, "n0 = arg 0\nguard n0 type_is @'b:C'\n", "(c,)", "(5,)"),
    FACT("guard/is", fg_loads_slot, "n0 = arg 0\nguard n0 is None\n", "(None,)", "(5,)"),
    FACT("guard/is_not_none", fg_loads_slot, "n0 = arg 0\nguard n0 is_not_none\n", "(5,)", "(None,)"),
    FACT("guard/equals/int", fg_loads_int, "n0 = arg 0\nguard n0 equals 12345\n", "(int('12345'),)", "(int('54321'),)"),
    FACT("guard/equals/float", fg_loads_float, "n0 = arg 0\nguard n0 equals 0.5\n", "(float('0.5'),)", "(float('1.5'),)"),
    FACT("guard/equals/str", fg_loads_str, "n0 = arg 0\nguard n0 equals 'a string'\n", "(' '.join('a string'.split()),)",
         "(' '.join('b string'.split()),)"),
    FACT("guard/truth", fg_loads_size, "n0 = arg 0\nguard n0 truth 1\n", "(5,)", "(0,)"),
    FACT("guard/length", fg_loads_size, "n0 = arg 0\nguard n0 length 2\n", "([1, 2],)", "([1],)"),
    FACT("guard/dict_has", fg_loads_dict, "n0 = arg 0\nguard n0 dict_has 'lr'\n", "({'lr': 7},)", "({'mo': 7},)"),
    FACT("guard/dict_lacks", fg_loads_dict, "n0 = arg 0\nguard n0 dict_lacks 'lr'\n", "({'mo': 7},)", "({'lr': 7},)"),
    FACT("guard/dict_keys", fg_loads_dict, "n0 = arg 0\nguard n0 dict_keys ('lr', 'mo',)\n", "({'lr': 7, 'mo': 1},)",
         "({'mo': 7, 'lr': 1},)"),
    FACT("guard/attr_has", fg_loads_attr, "n0 = arg 0\nguard n0 attr_has 'a'\n", "(C(),)", "(Other(),)"),
    FACT("guard/attr_lacks", fg_loads_attr, "n0 = arg 0\nguard n0 attr_lacks 'a'\n", "(Other(),)", "(C(),)"),
    FACT("guard/drops_quietly", fg_loads_slot, "n0 = arg 0\nguard n0 drops_quietly 0\n", "(x,)", "(memoryview(b'a'),)"),
    FACT("guard/attr_drops_quietly", fg_loads_attr, "n0 = arg 0\nguard n0 attr_drops_quietly 'a'\n", "(Other(),)",
         "((o := Other()), setattr(o, 'a', memoryview(b'a')))[:1]"),
    FACT("guard/item_drops_quietly", fg_loads_dict, "n0 = arg 0\nguard n0 item_drops_quietly 'lr'\n", "({'mo': 7},)",
         "({'lr': memoryview(b'a')},)"),
    FACT("guard/is_nan", fg_loads_float, "n0 = arg 0\nguard n0 is_nan\n", "(float('nan'),)", "(1.0,)"),
    FACT("guard/in_range", fg_loads_int, "n0 = arg 0\nguard n0 in_range 3 9\n", "(5,)", "(50,)"),
    FACT("guard/is_subtype", fg_loads_slot, "n0 = arg 0\nguard n0 is_subtype @'b:C'\n", "(C,)", "(Other,)"),
    FACT("guard/is_no_subtype", fg_loads_slot, "n0 = arg 0\nguard n0 is_no_subtype @'b:C'\n", "(Other,)", "(C,)"),
    FACT("guard/set_has", fg_loads_slot, "n0 = arg 0\nguard n0 set_has 'lr'\n", "({'lr'},)", "({'mo'},)"),
    FACT("guard/set_lacks", fg_loads_slot, "n0 = arg 0\nguard n0 set_lacks 'lr'\n", "({'mo'},)", "({'lr'},)"),
    FACT("guard/set_items", fg_loads_slot, "n0 = arg 0\nguard n0 set_items ('lr', 'mo',)\n", "({'lr', 'mo'},)", "({'lr'},)"),
    FACT("guard/accepts", fg_loads_slot, "n0 = arg 0\nguard n0 accepts @'builtins:callable'\n", "(len,)", "(5,)"),
    FACT("guard/iterator_at", fg_loads_slot, "n0 = arg 0\nguard n0 iterator_at (0, 2,)\n", "(iter((1, 2)),)", "(iter((1, 2, 3)),)"),
    FACT("guard/tensor", fg_loads_ndarray, "n0 = arg 0\nguard n0 " ARRAY "\noutput n0\n", "(x,)", "(np.ones((4, 9)),)"),
    {"guard/torch_state/hit", fg_case_fact, fg_run_eval, fg_loads_nothing, NULL, 0, FG_CASE_HIT, "guard - " TORCH "0\n", "()"},
    {"guard/torch_state/miss", fg_case_fact, fg_run_eval, fg_loads_nothing, NULL, 0, FG_CASE_MISS, "guard - " TORCH "1\n", "()"},
    {"guard/torch_globals/hit", fg_case_fact, fg_run_eval, fg_loads_nothing, NULL, 0, FG_CASE_HIT, "guard - torch_globals 0 0\n", "()"},
    {"guard/torch_globals/miss", fg_case_fact, fg_run_eval, fg_loads_nothing, NULL, 0, FG_CASE_MISS, "guard - torch_globals 1 0\n", "()"},
    /* Arrays of NumPy have no gradients, so that nothing is accepted. */
    {"guard/gradient/miss", fg_case_fact, fg_run_eval, fg_loads_slot, NULL, 0, FG_CASE_MISS,
     "n0 = arg 0\nguard n0 gradient 'numpy' @'b:np.ndarray' keys=0 dtype=0 device=0:0 grad=0 layout=0 sizes=() strides=()\n", "(x,)"},
    /* The number that would be accepted is another one in each process. */
    {"guard/abc_token/miss", fg_case_fact, fg_run_eval, fg_loads_nothing, NULL, 0, FG_CASE_MISS, "guard - abc_token -1\n", "()"},
    FACT("guard/same", fg_loads_two, "n0 = arg 0\nn1 = arg 1\nrelation same n0 n1\n", "(x, x)", "(x, c)"),
    FACT("guard/distinct", fg_loads_two, "n0 = arg 0\nn1 = arg 1\nrelation distinct n0 n1\n", "(x, c)", "(x, x)"),
    FACT("guard/no_dict_of", fg_loads_two, "n0 = arg 0\nn1 = arg 1\nrelation no_dict_of n0 n1\n", "(c, {})", "(c, vars(c))"),
    /* No array of NumPy says which storage is its own, so that this program has nothing that would be accepted. */
    {"guard/storage_distinct/miss", fg_case_fact, fg_run_eval, fg_loads_storage, NULL, 0, FG_CASE_MISS,
     "n0 = arg 0\nn1 = arg 1\nrelation storage_distinct n0 n1\n", "(x, x)"},

    {"guard/memory_apart/hit", fg_case_fact, fg_run_eval, fg_loads_storage, NULL, 0, FG_CASE_HIT,
     "n0 = arg 0\nn1 = arg 1\nguard n0 type_is @'b:np.ndarray'\nguard n1 type_is @'b:np.ndarray'\nrelation memory_apart n0 n1\n",
     "(np.ones(4), np.ones(4))"},
    {"guard/memory_apart/miss", fg_case_fact, fg_run_eval, fg_loads_storage, NULL, 0, FG_CASE_MISS,
     "n0 = arg 0\nn1 = arg 1\nguard n0 type_is @'b:np.ndarray'\nguard n1 type_is @'b:np.ndarray'\nrelation memory_apart n0 n1\n", "(x, x)"},
    FACT("guard/holds/int", fg_loads_int, "n0 = arg 0\nrelation holds n0 'v0 8 % 0 =='\n", "(16,)", "(17,)"),
    FACT("guard/holds/size", fg_loads_ndarray,
         "n0 = arg 0\nguard n0 type_is @'b:np.ndarray'\nrelation holds n0 'size0.1 2 * size0.0 4 * =='\n", "(np.ones((4, 8)),)",
         "(np.ones((4, 9)),)"),

    /* accessors; what they lead to is compared by identity */
    FACT("accessor/arg", fg_loads_slot, "n0 = arg 0\nguard n0 is @'b:c'\n", "(c,)", "(5,)"),
    FACT("accessor/freevar", fg_loads_freevar, "n0 = freevar 0\nn1 = cell_contents n0\nguard n1 is None\n", "(here,)", "(there,)"),
    FACT("accessor/globals", fg_loads_globals, "n0 = globals\nn1 = dict_item n0 'C'\nguard n1 is @'b:C'\n", "(here,)", "(away,)"),
    FACT("accessor/builtins", fg_loads_builtins, "n0 = builtins\nn1 = dict_item n0 'len'\nguard n1 is @'b:len'\n", "(here,)", "(away,)"),
    FACT("accessor/function", fg_loads_slot, "n0 = function\nguard n0 is @'b:here'\n", "(here,)", "(there,)"),
    {"accessor/const/hit", fg_case_fact, fg_run_eval, fg_loads_nothing, NULL, 0, FG_CASE_HIT,
     "n0 = const @'b:C'\nn1 = type_lookup n0 'shared'\nguard n1 equals 7\n", "()"},
    {"accessor/const/miss", fg_case_fact, fg_run_eval, fg_loads_nothing, NULL, 0, FG_CASE_MISS,
     "n0 = const @'b:C'\nn1 = type_lookup n0 'shared'\nguard n1 equals 8\n", "()"},
    FACT_AT("accessor/cell_contents", fg_loads_field, offsetof(PyCellObject, ob_ref),
            "n0 = arg 0\nn1 = cell_contents n0\nguard n1 is None\n", "(types.CellType(None),)", "(types.CellType(1),)"),
    FACT("accessor/dict_item", fg_loads_dict, "n0 = arg 0\nn1 = dict_item n0 'lr'\nguard n1 is None\n", "({'lr': None},)", "({'lr': 1},)"),
    FACT("accessor/dict_key", fg_loads_slot, "n0 = arg 0\nn1 = dict_key n0 0\nguard n1 equals 'lr'\n", "({'lr': 1},)", "({'mo': 1},)"),
    FACT("accessor/proxy_mapping", fg_loads_slot, "n0 = arg 0\nn1 = proxy_mapping n0\nguard n1 length 1\n",
         "(types.MappingProxyType({'lr': 1}),)", "(types.MappingProxyType({}),)"),
    FACT("accessor/mro", fg_loads_slot, "n0 = arg 0\nn1 = mro n0\nguard n1 length 2\n", "(C,)", "(bool,)"),
    FACT("accessor/code_consts", fg_loads_slot, "n0 = arg 0\nn1 = code_consts n0\nguard n1 type_is @'b:tuple'\n", "(bare.__code__,)",
         "(5,)"),
    FACT("accessor/weakref", fg_loads_slot, "n0 = arg 0\nn1 = weakref n0\nguard n1 is_not_none\n", "(weakref.ref(c),)",
         "(weakref.ref(C()),)"),
    FACT("accessor/list_item", fg_loads_list, "n0 = arg 0\nn1 = list_item n0 0\nguard n1 is None\n", "([None],)", "([1],)"),
    FACT("accessor/tuple_item", fg_loads_tuple, "n0 = arg 0\nn1 = tuple_item n0 0\nguard n1 is None\n", "((None,),)", "((1,),)"),
    FACT("accessor/type", fg_loads_type, "n0 = arg 0\nn1 = type n0\nguard n1 is @'b:C'\n", "(c,)", "(5,)"),
    FACT("accessor/type_lookup", fg_loads_version, "n0 = arg 0\nn1 = type_lookup n0 'shared'\nguard n1 equals 7\n", "(C,)", "(Other,)"),
    FACT("accessor/instance_attr", fg_loads_attr, "n0 = arg 0\nn1 = instance_attr n0 'a'\nguard n1 is None\n", "(C(None),)", "(C(1),)"),
    FACT_AT("accessor/slot_attr", fg_loads_field, sizeof(PyObject),
            "n0 = arg 0\nguard n0 type_is @'b:Slots'\nn1 = slot_attr n0 16\nguard n1 is None\n", "(Slots(None),)", "(Slots(1),)"),
    FACT_AT("accessor/module_dict", fg_loads_field, sizeof(PyObject),
            "n0 = arg 0\nn1 = module_dict n0\nn2 = dict_item n1 'MethodType'\nguard n2 is @'b:types.MethodType'\n", "(types,)", "(np,)"),
    FACT_AT("accessor/code", fg_loads_field, offsetof(PyFunctionObject, func_code),
            "n0 = arg 0\nn1 = code n0\nguard n1 is @'b:here.__code__'\n", "(here,)", "(bare,)"),
    FACT_AT("accessor/defaults", fg_loads_field, offsetof(PyFunctionObject, func_defaults),
            "n0 = arg 0\nn1 = defaults n0\nn2 = tuple_item n1 0\nguard n2 equals 1\n", "(here,)", "(bare,)"),
    FACT_AT("accessor/kwdefaults", fg_loads_field, offsetof(PyFunctionObject, func_kwdefaults),
            "n0 = arg 0\nn1 = kwdefaults n0\nn2 = dict_item n1 'q'\nguard n2 equals 2\n", "(here,)", "(bare,)"),
    FACT_AT("accessor/closure", fg_loads_field, offsetof(PyFunctionObject, func_closure),
            "n0 = arg 0\nn1 = closure n0\nn2 = tuple_item n1 0\nn3 = cell_contents n2\nguard n3 is None\n", "(here,)", "(there,)"),
    FACT_AT("accessor/func_globals", fg_loads_field, offsetof(PyFunctionObject, func_globals),
            "n0 = arg 0\nn1 = func_globals n0\nn2 = dict_item n1 'C'\nguard n2 is @'b:C'\n", "(here,)", "(away,)"),
    FACT_AT("accessor/func_builtins", fg_loads_field, offsetof(PyFunctionObject, func_builtins),
            "n0 = arg 0\nn1 = func_builtins n0\nn2 = dict_item n1 'len'\nguard n2 is @'b:len'\n", "(here,)", "(away,)"),
    FACT_AT("accessor/type_part", fg_loads_field, offsetof(PyHeapTypeObject, ht_name),
            "n0 = arg 0\nn1 = type_part n0 0\nguard n1 equals 'C'\n", "(C,)", "(Other,)"),
    FACT_AT("accessor/method_func", fg_loads_field, offsetof(PyMethodObject, im_func),
            "n0 = arg 0\nn1 = method_func n0\nguard n1 is @'b:C.method'\n", "(c.method,)", "(types.MethodType(here, c),)"),
    FACT_AT("accessor/method_self", fg_loads_field, offsetof(PyMethodObject, im_self),
            "n0 = arg 0\nn1 = method_self n0\nguard n1 is @'b:c'\n", "(c.method,)", "(C().method,)"),
    FACT_AT("accessor/descr_func", fg_loads_field, sizeof(PyObject), "n0 = arg 0\nn1 = descr_func n0\nguard n1 is @'b:here'\n",
            "(staticmethod(here),)", "(staticmethod(there),)"),
    FACT_AT("accessor/property_part", fg_loads_field, sizeof(PyObject), "n0 = arg 0\nn1 = property_part n0 0\nguard n1 is @'b:here'\n",
            "(property(here),)", "(property(there),)"),
    FACT_AT("accessor/range_part", fg_loads_field, sizeof(PyObject), "n0 = arg 0\nn1 = range_part n0 0\nguard n1 equals 5\n",
            "(range(5, 9),)", "(range(6, 9),)"),
    FACT_AT("accessor/slice_part", fg_loads_field, sizeof(PyObject), "n0 = arg 0\nn1 = slice_part n0 0\nguard n1 equals 5\n",
            "(slice(5, 9),)", "(slice(6, 9),)"),
    FACT("accessor/iterator_part", fg_loads_slot, "n0 = arg 0\nn1 = iterator_part n0 0\nguard n1 length 2\n", "(iter((1, 2)),)",
         "(iter((1, 2, 3)),)"),
    FACT("accessor/iterator_item", fg_loads_slot, "n0 = arg 0\nn1 = iterator_item n0 1\nguard n1 equals 2\n", "(iter((1, 2)),)",
         "(iter((1, 3)),)"),
    FACT("accessor/deque_item", fg_loads_slot, "n0 = arg 0\nn1 = deque_item n0 1\nguard n1 equals 2\n", "(collections.deque((1, 2)),)",
         "(collections.deque((1, 3)),)"),
    FACT("accessor/view_dict", fg_loads_slot, "n0 = arg 0\nn1 = view_dict n0\nguard n1 dict_has 'lr'\n", "({'lr': 7}.keys(),)",
         "({'mo': 7}.keys(),)"),
    FACT("accessor/function_part", fg_loads_slot, "n0 = arg 0\nn1 = function_part n0 0\nguard n1 equals 'inner'\n", "(here,)", "(bare,)"),
    FACT("accessor/code_part", fg_loads_slot, "n0 = arg 0\nn1 = code_part n0 3\nguard n1 equals 'inner'\n", "(here.__code__,)",
         "(bare.__code__,)"),
    FACT("accessor/builtin_self", fg_loads_slot, "n0 = arg 0\nn1 = builtin_self n0\nguard n1 length 2\n", "([1, 2].append,)",
         "([1].append,)"),
    FACT("accessor/bases", fg_loads_slot, "n0 = arg 0\nn1 = bases n0\nn2 = tuple_item n1 0\nguard n2 is @'builtins:int'\n", "(bool,)",
         "(C,)"),
    FACT("accessor/getattr", fg_loads_attr, "n0 = arg 0\nn1 = getattr n0 'a'\nguard n1 is None\n", "(C(None),)", "(C(1),)"),

    /* many entries */
    ENTRIES("sizes", fg_case_sizes, fg_loads_ndarray, 1),
    ENTRIES("sizes", fg_case_sizes, fg_loads_ndarray, 2),
    ENTRIES("sizes", fg_case_sizes, fg_loads_ndarray, 8),
    ENTRIES("sizes", fg_case_sizes, fg_loads_ndarray, 64),
    ENTRIES("places", fg_case_places, fg_loads_places, 1),
    ENTRIES("places", fg_case_places, fg_loads_places, 2),
    ENTRIES("places", fg_case_places, fg_loads_places, 8),
    ENTRIES("places", fg_case_places, fg_loads_places, 64),
    ENTRIES("sizes", fg_case_sizes, fg_loads_ndarray, 512),
    ENTRIES("places", fg_case_places, fg_loads_places, 512),

    /* modules */
    ENTRIES("modules", fg_case_modules, fg_loads_modules, 1),
    ENTRIES("modules", fg_case_modules, fg_loads_modules, 10),
    ENTRIES("modules", fg_case_modules, fg_loads_modules, 100),
    ENTRIES("modules", fg_case_modules, fg_loads_modules, 1000),

    /* trees */
    TREES(1),
    TREES(10),
    TREES(100),
    TREES(1000),
    {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL},
};

/* 1 if some row is about this name: a kind or an accessor without one is a forgotten row. */
static int has_row(const char *group, const char *name)
{
    char wanted[64];
    int n = snprintf(wanted, sizeof wanted, "%s/%s/", group, name);
    for (const fg_bench_row *row = fg_bench_rows; row->name; row++)
        if (strncmp(row->name, wanted, (size_t)n) == 0)
            return 1;
    fprintf(stderr, "bench_guards: no row for %s %s\n", group, name);
    return 0;
}

int fg_bench_start(void)
{
    int complete = 1;
#define FG_GUARD(NAME, TEXT, ARG) complete &= has_row("guard", TEXT);
#include "guards/guard_kinds.def"
#undef FG_GUARD
#define FG_ACCESSOR(NAME, TEXT, KEY) complete &= has_row("accessor", TEXT);
#include "guards/accessors.def"
#undef FG_ACCESSOR
    return complete ? fg_cases_start() : 1;
}
