/* A description for people: sources as the user would write them, conditions as sentences, the tree with the user's lines. */
#include "guards/guard_private.h"
#include <string.h>
#include <structmember.h>

static PyObject *name_at(PyObject *names, int64_t index)
{
    if (names == NULL || !PyTuple_CheckExact(names) || index < 0 || index >= PyTuple_GET_SIZE(names))
        return NULL;
    PyObject *name = PyTuple_GET_ITEM(names, index);
    return PyUnicode_CheckExact(name) ? name : NULL;
}

/* The name of the member at a byte offset, for a source whose exact type is demanded; borrowed, NULL: unknown. */
static PyObject *slot_name(const fg_desc *desc, fg_node parent, int64_t offset)
{
    const PyTypeObject *type = desc->dead ? NULL : fg_desc_type_of(desc, parent);
    PyObject *mro = type != NULL ? type->tp_mro : NULL, *name, *value;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = fg_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        Py_ssize_t at = 0;
        while (dict != NULL && PyDict_Next(dict, &at, &name, &value)) {
            if (Py_IS_TYPE(value, &PyMemberDescr_Type) && ((PyMemberDescrObject *)value)->d_member->offset == offset &&
                PyUnicode_Check(name))
                return name;
        }
    }
    return NULL;
}

static int is_module_dict(const fg_desc *desc, fg_node node)
{
    return desc->nodes[node].acc == FG_ACC_GLOBALS || desc->nodes[node].acc == FG_ACC_BUILTINS;
}

static PyObject *dotted(PyObject *left, PyObject *name)
{
    return PyUnicode_FromFormat("%U.%U", left, name);
}

/* The dicts in which a torch module keeps what its users reach as attributes. */
static int is_torch_table(const fg_node_record *node)
{
    static const char *const tables[] = {"_modules", "_parameters", "_buffers"};
    if (node->acc != FG_ACC_INSTANCE_ATTR || node->key == NULL)
        return 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (PyUnicode_CompareWithASCIIString(node->key, tables[i]) == 0)
            return 1;
    }
    return 0;
}
static const char *const func_parts[] = {"__name__", "__qualname__", "__module__", "__doc__", "__dict__", "__annotations__"};
static const char *const code_parts[] = {"names", "localsplusnames", "filename", "name", "qualname", "exceptiontable"};

static PyObject *step(const fg_desc *desc, const fg_node_record *node, PyObject *left)
{
    const fg_node_record *parent = node->parent >= 0 ? &desc->nodes[node->parent] : NULL;
    PyObject *key = node->key, *text, *result;

    switch ((fg_accessor)node->acc) {
    case FG_ACC_ARG: {
        PyObject *name = name_at(desc->slot_names, node->index);
        if (name == NULL && desc->slot_names != NULL && PyTuple_CheckExact(desc->slot_names) &&
            node->index >= PyTuple_GET_SIZE(desc->slot_names))
            return PyUnicode_FromFormat("<value %lld on the stack>", (long long)(node->index - PyTuple_GET_SIZE(desc->slot_names)));
        return name != NULL ? Py_NewRef(name) : PyUnicode_FromFormat("arg[%lld]", (long long)node->index);
    }
    case FG_ACC_FREEVAR: {
        PyObject *name = name_at(desc->free_names, node->index);
        return name != NULL ? PyUnicode_FromFormat("cell(%U)", name) : PyUnicode_FromFormat("cell[%lld]", (long long)node->index);
    }
    case FG_ACC_GLOBALS: return PyUnicode_FromString("globals()");
    case FG_ACC_BUILTINS: return PyUnicode_FromString("__builtins__");
    case FG_ACC_FUNC: return PyUnicode_FromString("<this function>");
    case FG_ACC_CONST: return fg_plain_hold(&desc->holds[node->hold]);
    case FG_ACC_CELL_CONTENTS:
        if (parent->acc == FG_ACC_FREEVAR && name_at(desc->free_names, parent->index) != NULL)
            return Py_NewRef(name_at(desc->free_names, parent->index));
        return PyUnicode_FromFormat("%U.cell_contents", left);
    case FG_ACC_DICT_ITEM:
        if (key != NULL && PyUnicode_CheckExact(key) && PyUnicode_IsIdentifier(key)) {
            if (is_module_dict(desc, node->parent))
                return Py_NewRef(key);
            if (parent->acc == FG_ACC_MODULE_DICT) {
                /* The parent's text is that of the module with `.__dict__` behind it. */
                PyObject *module = fg_desc_source_str(desc, parent->parent);
                result = module != NULL ? dotted(module, key) : NULL;
                Py_XDECREF(module);
                return result;
            }
            if (is_torch_table(parent)) {
                PyObject *owner = fg_desc_source_str(desc, parent->parent);
                result = owner != NULL ? dotted(owner, key) : NULL;
                Py_XDECREF(owner);
                return result;
            }
        }
        text = fg_plain_hold(&desc->holds[node->hold]);
        result = text != NULL ? PyUnicode_FromFormat("%U[%U]", left, text) : NULL;
        Py_XDECREF(text);
        return result;
    case FG_ACC_LIST_ITEM:
    case FG_ACC_TUPLE_ITEM: return PyUnicode_FromFormat("%U[%lld]", left, (long long)node->index);
    case FG_ACC_TYPE: return PyUnicode_FromFormat("type(%U)", left);
    case FG_ACC_TYPE_LOOKUP:
    case FG_ACC_INSTANCE_ATTR:
    case FG_ACC_GETATTR: return dotted(left, key);
    case FG_ACC_SLOT_ATTR: {
        PyObject *name = slot_name(desc, node->parent, node->index);
        return name != NULL ? dotted(left, name) : PyUnicode_FromFormat("%U.<slot at %lld>", left, (long long)node->index);
    }
    case FG_ACC_MODULE_DICT: return PyUnicode_FromFormat("%U.__dict__", left);
    case FG_ACC_FUNC_CODE: return PyUnicode_FromFormat("%U.__code__", left);
    case FG_ACC_FUNC_DEFAULTS: return PyUnicode_FromFormat("%U.__defaults__", left);
    case FG_ACC_FUNC_KWDEFAULTS: return PyUnicode_FromFormat("%U.__kwdefaults__", left);
    case FG_ACC_FUNC_CLOSURE: return PyUnicode_FromFormat("%U.__closure__", left);
    case FG_ACC_FUNC_GLOBALS: return PyUnicode_FromFormat("%U.__globals__", left);
    case FG_ACC_FUNC_BUILTINS: return PyUnicode_FromFormat("%U.__builtins__", left);
    case FG_ACC_METHOD_FUNC:
    case FG_ACC_DESCR_FUNC: return PyUnicode_FromFormat("%U.__func__", left);
    case FG_ACC_DICT_KEY: return PyUnicode_FromFormat("list(%U)[%lld]", left, (long long)node->index);
    case FG_ACC_PROXY_MAPPING: return PyUnicode_FromFormat("%U | {}", left);
    case FG_ACC_TYPE_PART: return PyUnicode_FromFormat("%U.%s", left, func_parts[node->index]);
    case FG_ACC_MRO: return PyUnicode_FromFormat("%U.__mro__", left);
    case FG_ACC_CODE_CONSTS: return PyUnicode_FromFormat("%U.co_consts", left);
    case FG_ACC_WEAKREF: return PyUnicode_FromFormat("%U()", left);
    case FG_ACC_METHOD_SELF: return PyUnicode_FromFormat("%U.__self__", left);
    case FG_ACC_PROPERTY_PART: return PyUnicode_FromFormat("%U.%s", left, node->index == 0 ? "fget" : node->index == 1 ? "fset" : "fdel");
    case FG_ACC_ITER_PART: return PyUnicode_FromFormat("<part %lld of %U>", (long long)node->index, left);
    case FG_ACC_ITER_ITEM: return PyUnicode_FromFormat("<item %lld that %U gives>", (long long)node->index, left);
    case FG_ACC_DEQUE_ITEM: return PyUnicode_FromFormat("%U[%lld]", left, (long long)node->index);
    case FG_ACC_VIEW_DICT: return PyUnicode_FromFormat("%U.mapping", left);
    case FG_ACC_FUNC_PART: return PyUnicode_FromFormat("%U.%s", left, func_parts[node->index]);
    case FG_ACC_CODE_PART: return PyUnicode_FromFormat("%U.co_%s", left, code_parts[node->index]);
    case FG_ACC_BUILTIN_SELF: return PyUnicode_FromFormat("%U.__self__", left);
    case FG_ACC_BASES: return PyUnicode_FromFormat("%U.__bases__", left);
    case FG_ACC_RANGE_PART:
    case FG_ACC_SLICE_PART: return PyUnicode_FromFormat("%U.%s", left, node->index == 0 ? "start" : node->index == 1 ? "stop" : "step");
    case FG_N_ACCESSORS: break;
    }
    PyErr_SetString(PyExc_SystemError, "no such accessor");
    return NULL;
}

PyObject *fg_desc_source_str(const fg_desc *desc, fg_node node)
{
    fg_node path[64], at = node;
    int n = 0;
    PyObject *text = NULL;

    if (node < 0 || (uint32_t)node >= desc->n_nodes) {
        PyErr_SetString(PyExc_IndexError, "no such source");
        return NULL;
    }
    while (at >= 0 && n < 64) {
        path[n++] = at;
        at = desc->nodes[at].parent;
    }
    if (at >= 0 && (text = PyUnicode_FromString("...")) == NULL) /* too deep to be of use to anyone */
        return NULL;
    while (n-- > 0) {
        PyObject *longer = step(desc, &desc->nodes[path[n]], text);
        Py_XDECREF(text);
        if (longer == NULL)
            return NULL;
        text = longer;
    }
    return text;
}

static PyObject *relation_sentence(const fg_desc *desc, const fg_guard_record *guard)
{
    PyObject *list = PyList_New(0);
    if (list == NULL)
        return NULL;
    for (uint32_t i = 0; i < guard->n_ids; i++) {
        if (fg_text_take(list, fg_desc_source_str(desc, ((const fg_node *)guard->owned)[i])) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    if (guard->kind == FG_GUARD_EXPR) {
        PyObject *sentence = fg_expr_sentence(fg_guard_expr(guard->kind, &guard->leaf), list);
        Py_DECREF(list);
        return sentence;
    }
    PyObject *names = fg_text_join(list, guard->kind == FG_GUARD_SAME ? " is " : ", ");
    PyObject *text = NULL;
    if (names != NULL) {
        text = guard->kind == FG_GUARD_SAME       ? Py_NewRef(names)
               : guard->kind == FG_GUARD_DISTINCT ? PyUnicode_FromFormat("%U are all different objects", names)
               : guard->kind == FG_GUARD_NO_DICT_OF
                   ? PyUnicode_FromFormat("the first of %U has no __dict__ in common with the others", names)
               : guard->kind == FG_GUARD_MEMORY_APART ? PyUnicode_FromFormat("%U have no memory in common", names)
                                                      : PyUnicode_FromFormat("%U do not share a storage", names);
    }
    Py_XDECREF(names);
    return text;
}

static PyObject *tensor_sentence(const fg_desc *desc, const fg_guard_record *guard, PyObject *source)
{
    const fg_meta_record *meta = guard->leaf.p;
    PyObject *type = guard->hold >= 0 ? fg_hold_get(&desc->holds[guard->hold]) : NULL;
    PyObject *name =
        type != NULL && PyType_Check(type) ? PyUnicode_FromString(((PyTypeObject *)type)->tp_name) : PyUnicode_FromString("tensor");
    PyObject *text = name != NULL ? fg_meta_sentence(meta, source, name) : NULL;
    Py_XDECREF(name);
    return text;
}

static PyObject *gradient_sentence(const fg_desc *desc, const fg_guard_record *guard, PyObject *source)
{
    PyObject *name = PyUnicode_FromFormat("%U.grad", source), *text = NULL;
    if (name != NULL && ((const fg_meta_record *)guard->leaf.p)->keys == 0)
        text = PyUnicode_FromFormat("%U is None", name);
    else if (name != NULL)
        text = tensor_sentence(desc, guard, name);
    Py_XDECREF(name);
    return text;
}

PyObject *fg_guard_sentence(const fg_desc *desc, const fg_guard_record *guard)
{
    PyObject *source = NULL, *arg = NULL, *text = NULL;

    if (guard->n_ids > 0)
        return relation_sentence(desc, guard);
    source = guard->node >= 0 ? fg_desc_source_str(desc, guard->node) : PyUnicode_FromString("torch state");
    arg = fg_plain_arg(desc, guard);
    if (source == NULL || arg == NULL)
        goto done;
    switch ((fg_guard_kind)guard->kind) {
    case FG_GUARD_PRESENT: text = PyUnicode_FromFormat("%U is there", source); break;
    case FG_GUARD_ABSENT: text = PyUnicode_FromFormat("%U is not there", source); break;
    case FG_GUARD_TYPE: text = PyUnicode_FromFormat("type(%U) is %U", source, arg); break;
    case FG_GUARD_ID: text = PyUnicode_FromFormat("%U is %U", source, arg); break;
    case FG_GUARD_NOT_NONE: text = PyUnicode_FromFormat("%U is not None", source); break;
    case FG_GUARD_CONST: text = PyUnicode_FromFormat("%U == %U", source, arg); break;
    case FG_GUARD_SUBTYPE: text = PyUnicode_FromFormat("issubclass(%U, %U)", source, arg); break;
    case FG_GUARD_NO_SUBTYPE: text = PyUnicode_FromFormat("not issubclass(%U, %U)", source, arg); break;
    case FG_GUARD_TRUTH: text = PyUnicode_FromFormat("bool(%U) is %s", source, guard->leaf.lo ? "True" : "False"); break;
    case FG_GUARD_LENGTH: text = PyUnicode_FromFormat("len(%U) == %U", source, arg); break;
    case FG_GUARD_SET_HAS:
    case FG_GUARD_DICT_HAS: text = PyUnicode_FromFormat("%U in %U", arg, source); break;
    case FG_GUARD_SET_LACKS:
    case FG_GUARD_DICT_LACKS: text = PyUnicode_FromFormat("%U not in %U", arg, source); break;
    case FG_GUARD_SET_ITEMS: text = PyUnicode_FromFormat("%U == set(%U)", source, arg); break;
    case FG_GUARD_DICT_KEYS: text = PyUnicode_FromFormat("tuple(%U) == %U", source, arg); break;
    case FG_GUARD_ATTR_HAS: text = PyUnicode_FromFormat("%U has its own attribute %U", source, arg); break;
    case FG_GUARD_ATTR_LACKS: text = PyUnicode_FromFormat("%U has no attribute %U of its own", source, arg); break;
    case FG_GUARD_ACCEPTS: text = PyUnicode_FromFormat("%U accepts %U", arg, source); break;
    case FG_GUARD_ITER_STATE: text = PyUnicode_FromFormat("%U is at %U", source, arg); break;
    case FG_GUARD_QUIET: text = PyUnicode_FromFormat("%U may be dropped without running code", source); break;
    case FG_GUARD_ATTR_QUIET: text = PyUnicode_FromFormat("attribute %U of %U may be dropped without running code", arg, source); break;
    case FG_GUARD_DICT_QUIET: text = PyUnicode_FromFormat("item %U of %U may be dropped without running code", arg, source); break;
    case FG_GUARD_FLOAT_NAN: text = PyUnicode_FromFormat("isnan(%U)", source); break;
    case FG_GUARD_INT_RANGE:
        text = PyUnicode_FromFormat("%lld <= %U <= %lld", (long long)guard->leaf.lo, source, (long long)guard->leaf.hi);
        break;
    case FG_GUARD_TENSOR: text = tensor_sentence(desc, guard, source); break;
    case FG_GUARD_GRADIENT: text = gradient_sentence(desc, guard, source); break;
    case FG_GUARD_TORCH_STATE: text = fg_state_sentence(guard->leaf.p); break;
    case FG_GUARD_ABC_TOKEN: text = PyUnicode_FromFormat("abc.get_cache_token() == %U", arg); break;
    case FG_GUARD_TORCH_GLOBALS:
        text = PyUnicode_FromFormat("torch's global switches are as when it was compiled, %lld threads", (long long)guard->leaf.hi);
        break;
    case FG_GUARD_SAME:
    case FG_GUARD_DISTINCT:
    case FG_GUARD_NO_DICT_OF:
    case FG_GUARD_STORAGE_DISTINCT:
    case FG_GUARD_MEMORY_APART:
    case FG_GUARD_EXPR:
    case FG_N_GUARDS: break;
    }
done:
    Py_XDECREF(source);
    Py_XDECREF(arg);
    return text;
}

PyObject *fg_guard_origin_text(const fg_guard_record *guard)
{
    return guard->file != NULL ? PyUnicode_FromFormat("  (%U:%d)", guard->file, guard->line) : PyUnicode_FromString("");
}

static const char *spaces(int n)
{
    static const char all[] = "                                                                                        ";
    return all + (n < (int)sizeof all - 1 ? (int)sizeof all - 1 - n : 0);
}

static int add_leaf(PyObject *list, const fg_desc *desc, const fg_guard_record *guard, int indent)
{
    PyObject *sentence = fg_guard_sentence(desc, guard), *origin = fg_guard_origin_text(guard);
    int bad = sentence == NULL || origin == NULL || fg_text_add(list, "%s- %U%U\n", spaces(indent), sentence, origin) < 0;
    Py_XDECREF(sentence);
    Py_XDECREF(origin);
    return bad ? -1 : 0;
}

static int add_source(PyObject *list, const fg_desc *desc, const fg_want *want, fg_node index, int indent)
{
    const fg_node_record *node = &desc->nodes[index];
    PyObject *name = fg_desc_source_str(desc, index);
    int bad = name == NULL || fg_text_add(list, "%s%U  [%s]", spaces(indent), name, fg_accessor_text(node->acc)) < 0 ||
              (node->output >= 0 && fg_text_add(list, "  -> input %d", (int)node->output) < 0) || fg_text_add(list, "\n") < 0;
    Py_XDECREF(name);
    for (uint32_t i = want->first[index]; !bad && i < want->first[index + 1]; i++)
        bad = add_leaf(list, desc, &desc->guards[want->by_node[i]], indent + 2) < 0;
    return bad ? -1 : 0;
}

PyObject *fg_desc_tree_str(const fg_desc *desc)
{
    fg_want want;
    int32_t *links = NULL; /* first child and next sibling of each source, roots under the last */
    PyObject *list = NULL;
    uint32_t n = desc->n_nodes;

    if (fg_want_init(desc, &want) != FG_OK)
        return PyErr_NoMemory();
    links = fg_malloc(2 * ((size_t)n + 1) * sizeof *links);
    if (links == NULL) {
        PyErr_NoMemory();
        goto fail;
    }
    memset(links, 0xff, 2 * ((size_t)n + 1) * sizeof *links);
    for (uint32_t i = n; i-- > 0;) {
        uint32_t parent = desc->nodes[i].parent >= 0 ? (uint32_t)desc->nodes[i].parent : n;
        links[n + 1 + i] = links[parent];
        links[parent] = (int32_t)i;
    }
    list = PyList_New(0);
    if (list == NULL || fg_text_add(list, "guards (%u condition%s)%s\n", desc->n_guards, desc->n_guards == 1 ? "" : "s",
                                    desc->dead ? ", dead: an object they depend on is gone" : "") < 0)
        goto fail;
    int32_t at = links[n], depth = 1;
    while (at >= 0) {
        if (add_source(list, desc, &want, at, 2 * (depth < 40 ? depth : 40)) < 0)
            goto fail;
        if (links[at] >= 0) {
            at = links[at];
            depth++;
            continue;
        }
        while (at >= 0 && links[n + 1 + at] < 0) {
            at = desc->nodes[at].parent;
            depth--;
        }
        if (at >= 0)
            at = links[n + 1 + at];
    }
    for (uint32_t i = want.first[n]; i < want.first[n + 1]; i++) {
        if (add_leaf(list, desc, &desc->guards[want.by_node[i]], 2) < 0)
            goto fail;
    }
    fg_free(links);
    fg_want_fini(&want);
    return fg_text_join(list, "");
fail:
    Py_XDECREF(list);
    fg_free(links);
    fg_want_fini(&want);
    return NULL;
}
