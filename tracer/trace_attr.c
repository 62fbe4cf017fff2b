/* Attributes, by the rules of object.__getattribute__: data descriptor of the type, instance dict, other class attribute, __getattr__.
 *
 * What the rules find on a class is a fact about the class (`type_lookup`), what they find in the instance is one about the instance; a name that
 * must not be there is a fact too. Stores are emitted as STORE_ATTR and remembered in the object's overlay.
 */
#include "runtime/cpython/dict.h"
#include "runtime/cpython/frame.h"
#include "tracer/trace_python.h"

#include <string.h>
#include <structmember.h>

fg_flow fg_object_type(fg_trace *t, fg_value *o, fg_value **out)
{
    FG_DO(fg_look(t, &o));
    if ((o->kind == FG_V_OBJECT || o->kind == FG_V_TUPLE) && o->c != NULL) {
        *out = o->c; /* made in this trace: the class it was called through */
        return FG_FLOW_OK;
    }
    if (o->type == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "the type is only known at run time");
    for (int32_t i = 0; i < t->n_types; i++)
        if (t->types[i]->real == (PyObject *)o->type) {
            *out = t->types[i];
            return FG_FLOW_OK;
        }
    fg_value *type = fg_value_const(t, (PyObject *)o->type);
    if (type == NULL)
        return FG_FLOW_ERROR;
    *out = type;
    fg_node node;
    FG_DO(fg_node_of(t, o, &node));
    if (node == FG_NODE_NONE || !(o->type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return FG_FLOW_OK;
    type->acc = FG_ACC_TYPE;
    type->parent = node;
    return fg_push(t, &t->types, &t->n_types, &t->cap_types, type);
}

fg_flow fg_type_lookup(fg_trace *t, fg_value *type_value, PyTypeObject *type, PyObject *name, fg_value **out)
{
    PyObject *found = NULL, *mro = type->tp_mro;
    *out = NULL;
    /* A key that is no string may have code of its own, which no look-up of ours runs; nor is one in a class without an MRO a fact. */
    if (fg_type_look(type, name, &found) == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of class %s, which cannot be looked up without running code", name,
                        type->tp_name);
    bool is_fixed = mro != NULL;
    for (Py_ssize_t i = 0; is_fixed && i < PyTuple_GET_SIZE(mro); i++)
        is_fixed = !(((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_flags & Py_TPFLAGS_HEAPTYPE);
    if (is_fixed) { /* static types do not change */
        if (found != NULL && (*out = fg_value_const(t, found)) == NULL)
            return FG_FLOW_ERROR;
        return FG_FLOW_OK;
    }
    fg_node parent, node;
    FG_DO(fg_node_of(t, type_value, &parent));
    if (parent == FG_NODE_NONE)
        FG_DO(fg_source(t, FG_ACC_CONST, FG_NODE_NONE, (PyObject *)type, 0, &parent));
    if (found == NULL) {
        FG_DO(fg_source(t, FG_ACC_TYPE_LOOKUP, parent, name, 0, &node));
        return fg_guard(t, FG_GUARD_ABSENT, node, NULL, 0, 0);
    }
    if ((*out = fg_value_lazy(t, FG_ACC_TYPE_LOOKUP, parent, name, 0, found)) == NULL)
        return FG_FLOW_ERROR;
    return fg_rely_on(t, *out);
}

/* The MRO of a class that may be given other bases has, or has not, this one. */
fg_flow fg_is_subtype(fg_trace *t, fg_value *type_value, PyTypeObject *type, PyTypeObject *base, bool *yes)
{
    if (type->tp_mro == NULL) /* its metaclass is working it out */
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "class %s, which has no MRO yet", type->tp_name);
    *yes = PyType_IsSubtype(type, base);
    if (type == base || base == &PyBaseObject_Type || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE))
        return FG_FLOW_OK;
    fg_node node;
    FG_DO(fg_node_of(t, type_value, &node));
    if (node == FG_NODE_NONE)
        FG_DO(fg_source(t, FG_ACC_CONST, FG_NODE_NONE, (PyObject *)type, 0, &node));
    return fg_guard(t, *yes ? FG_GUARD_SUBTYPE : FG_GUARD_NO_SUBTYPE, node, (PyObject *)base, 0, 0);
}

/* object.__getattribute__, or what a type of C calls by that name and is the same function. */
static bool is_generic_read(PyObject *descr)
{
    return descr == fg_names.object_getattribute ||
           (Py_IS_TYPE(descr, &PyWrapperDescr_Type) && ((PyWrapperDescrObject *)descr)->d_wrapped == (void *)PyObject_GenericGetAttr);
}

/* The class says how attributes are read: the generic way, which modules share but for a __getattr__ in their dict, or by a Python function (*own), which
 * must be the only say: what it does not find is not asked of a __getattr__. */
static fg_flow way_of_reading(fg_trace *t, fg_value *type_value, PyTypeObject *type, fg_value **own)
{
    fg_value *found, *hook;
    *own = NULL;
    if (type_value->reads_generic)
        return FG_FLOW_OK;
    FG_DO(fg_type_lookup(t, type_value, type, fg_names.s_getattribute, &found));
    bool is_module = PyType_IsSubtype(type, &PyModule_Type);
    if (found != NULL &&
        (is_module ? found->real == fg_py_type_lookup(&PyModule_Type, fg_names.s_getattribute) : is_generic_read(found->real))) {
        FG_DO(fg_look(t, &found));
        FG_SET(t, type_value->reads_generic, 1);
        return FG_FLOW_OK;
    }
    if (found != NULL) {
        FG_DO(fg_look(t, &found));
        FG_DO(fg_type_lookup(t, type_value, type, fg_names.s_getattr, &hook));
        if (found->kind == FG_V_FUNC && hook == NULL) {
            *own = found;
            return FG_FLOW_OK;
        }
    }
    return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "%s has its own __getattribute__", type->tp_name);
}

static fg_flow wrapped_function(fg_trace *t, fg_value *descr, fg_value **out)
{
    PyObject *func = PyObject_GetAttr(descr->real, fg_names.s_func);
    if (func == NULL || fg_own(t, func) == NULL)
        return FG_FLOW_ERROR;
    fg_node node;
    FG_DO(fg_node_of(t, descr, &node));
    *out = node == FG_NODE_NONE ? fg_value_const(t, func) : fg_value_lazy(t, FG_ACC_DESCR_FUNC, node, NULL, 0, func);
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow method_new(fg_trace *t, fg_value *func, fg_value *self, PyObject *name, fg_value **out)
{
    fg_value *m = fg_value_new(t, FG_V_METHOD);
    if (m == NULL)
        return FG_FLOW_ERROR;
    m->a = func;
    m->b = self;
    m->key = name;
    m->type = func->kind == FG_V_FUNC ? &PyMethod_Type : NULL;
    *out = m;
    return FG_FLOW_OK;
}

/* Whether a class attribute is a descriptor, and of which kind, is said by its class, which may grow these methods, or lose them. */
static fg_flow pin_descriptor_kind(fg_trace *t, fg_value *found)
{
    if (!(Py_TYPE(found->real)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return FG_FLOW_OK;
    PyObject *const names[] = {fg_names.s_get, fg_names.s_set, fg_names.s_delete};
    FG_DO(fg_look(t, &found));
    if (found->type == NULL)
        return FG_FLOW_OK;
    fg_value *type, *method;
    FG_DO(fg_object_type(t, found, &type));
    for (int i = 0; i < 3; i++)
        FG_DO(fg_type_lookup(t, type, found->type, names[i], &method));
    return FG_FLOW_OK;
}

/* A descriptor whose class has a __get__ in Python: type(d).__get__(d, self, cls). *handled false: it is of another kind. */
static fg_flow user_descriptor(fg_trace *t, fg_value *found, fg_value *self, fg_value *cls, fg_value **out, bool *handled)
{
    fg_value *type, *get;
    *handled = false;
    FG_DO(fg_look(t, &found));
    if (found->kind != FG_V_OBJECT || found->type == NULL || found->type->tp_descr_get == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_object_type(t, found, &type));
    FG_DO(fg_type_lookup(t, type, found->type, fg_names.s_get, &get));
    if (get == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &get));
    if (get->kind != FG_V_FUNC)
        return FG_FLOW_OK;
    fg_value *args[3] = {found, self != NULL ? self : fg_value_const(t, Py_None), cls};
    if (args[1] == NULL)
        return FG_FLOW_ERROR;
    *handled = true;
    return fg_call_now(t, get, args, 3, NULL, out);
}

/* What a class attribute becomes when it is read through an instance (self) or, with self NULL, through the class. */
static fg_flow bind(fg_trace *t, fg_value *found, fg_value *self, fg_value *cls, PyObject *name, fg_value **out)
{
    FG_DO(fg_look(t, &found));
    PyTypeObject *type = found->type;
    if (found->kind == FG_V_FUNC) {
        if (self == NULL) {
            *out = found;
            return FG_FLOW_OK;
        }
        return method_new(t, found, self, name, out);
    }
    bool is_existing = found->kind == FG_V_CONST || (found->kind == FG_V_OBJECT && found->real != NULL);
    if (is_existing && type == &PyStaticMethod_Type)
        return wrapped_function(t, found, out);
    if (is_existing && type == &PyClassMethod_Type) {
        fg_value *func;
        FG_DO(wrapped_function(t, found, &func));
        FG_DO(fg_look(t, &func));
        return method_new(t, func, cls, NULL, out);
    }
    if (found->kind == FG_V_CONST && (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type)) {
        if (self == NULL) {
            *out = found;
            return FG_FLOW_OK;
        }
        return method_new(t, found, self, name, out);
    }
    if (found->kind == FG_V_CONST && type == &PyClassMethodDescr_Type)
        return method_new(t, found, cls, name, out);
    if (type != NULL && type->tp_descr_get == NULL) {
        /* the type of the value might grow a __get__ */
        *out = found;
        return FG_FLOW_OK;
    }
    if (found->kind == FG_V_CONST && PyCFunction_Check(found->real)) {
        *out = found;
        return FG_FLOW_OK;
    }
    bool handled;
    FG_DO(user_descriptor(t, found, self, cls, out, &handled));
    if (handled)
        return FG_FLOW_OK;
    return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "descriptor of type %s for '%U'", type ? type->tp_name : "?", name);
}

static fg_flow property_part(fg_trace *t, fg_value *property, int part, fg_value **out)
{
    static const char *const names[] = {"fget", "fset", "fdel"};
    PyObject *func = PyObject_GetAttrString(property->real, names[part]);
    if (func == NULL || fg_own(t, func) == NULL)
        return FG_FLOW_ERROR;
    if (func == Py_None)
        return fg_break(t, FG_BREAK_RAISES, "property without %s", names[part]);
    fg_node node;
    FG_DO(fg_node_of(t, property, &node));
    *out = node == FG_NODE_NONE ? fg_value_const(t, func) : fg_value_lazy(t, FG_ACC_PROPERTY_PART, node, NULL, part, func);
    return *out ? fg_look(t, out) : FG_FLOW_ERROR;
}

static fg_flow slot_read(fg_trace *t, fg_value *o, fg_value *descr, PyObject *name, fg_value **out)
{
    PyMemberDef *member = ((PyMemberDescrObject *)descr->real)->d_member;
    *out = NULL;
    if (member->type != T_OBJECT_EX || (member->flags & READONLY))
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "member '%U' of %s", name, o->type->tp_name);
    fg_node node;
    FG_DO(fg_node_of(t, o, &node));
    if (node == FG_NODE_NONE)
        return FG_FLOW_OK; /* made here and never set */
    PyObject *real = *(PyObject **)((char *)o->real + member->offset);
    if (real == NULL) {
        fg_node slot;
        FG_DO(fg_source(t, FG_ACC_SLOT_ATTR, node, name, member->offset, &slot));
        return fg_guard(t, FG_GUARD_ABSENT, slot, NULL, 0, 0);
    }
    if ((*out = fg_value_lazy(t, FG_ACC_SLOT_ATTR, node, name, member->offset, real)) == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_rely_on(t, *out));
    return fg_map_set(t, &o->map, name, PyObject_Hash(name), *out, 0);
}

fg_flow fg_attr_in_instance(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    *out = NULL;
    if (o->is_partial && fg_py_type_lookup(o->type, name) == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a %s that was made here", name, o->type->tp_name);
    if (o->is_complete || o->node == FG_NODE_NONE || !fg_type_has_instance_dict(o->type))
        return FG_FLOW_OK;
    PyObject *real = NULL;
    Py_hash_t hash = PyObject_Hash(name);
    if (fg_attr_find(o->real, name, hash, &real) == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a %s with attribute names that are no plain strings", name,
                        o->type->tp_name);
    if (real == NULL) {
        FG_DO(fg_guard(t, FG_GUARD_ATTR_LACKS, o->node, name, 0, 0));
        return FG_FLOW_OK;
    }
    if ((*out = fg_value_lazy(t, FG_ACC_INSTANCE_ATTR, o->node, name, 0, real)) == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_rely_on(t, *out));
    return fg_map_set(t, &o->map, name, hash, *out, 0);
}

/* What neither class nor instance has: nn.Module looks into its dicts, any class may have a __getattr__ of its own. */
static fg_flow missing_attr(fg_trace *t, fg_value *o, fg_value *type, PyObject *name, fg_value **out, fg_getter *getter)
{
    fg_value *found;
    if (PyType_IsSubtype(o->type, &PyModule_Type)) {
        FG_DO(fg_attr_in_instance(t, o, fg_names.s_getattr, &found));
        if (found != NULL)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "module with a __getattr__ for '%U'", name);
    }
    FG_DO(fg_type_lookup(t, type, o->type, fg_names.s_getattr, &found));
    if (found == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &found));
    if (fg_is_nn_module(o->type) && found->real == fg_py_type_lookup((PyTypeObject *)fg_py_torch_module_class(), fg_names.s_getattr)) {
        FG_DO(fg_guard_const(t, found));
        return o->node != FG_NODE_NONE ? fg_module_attr(t, o, name, out) : FG_FLOW_OK;
    }
    if (getter == NULL || found->kind != FG_V_FUNC)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "%s has a __getattr__ and '%U' is not there", o->type->tp_name, name);
    *getter = (fg_getter){found, name, true};
    return FG_FLOW_OK;
}

/* The `__dict__` that a class statement gives its instances: each class its own, or one for all, which then is of `object`. */
static bool is_own_dict(PyObject *descr, const fg_value *o)
{
    const PyGetSetDescrObject *d = (PyGetSetDescrObject *)descr;
    return d->d_common.d_name == fg_names.s_dict &&
           ((d->d_common.d_type->tp_flags & Py_TPFLAGS_HEAPTYPE) || d->d_common.d_type == &PyBaseObject_Type) &&
           fg_type_has_instance_dict(o->type);
}

fg_flow fg_attr_missing(fg_trace *t, fg_value *o, PyObject *name, fg_value **out, fg_getter *getter)
{
    fg_value *type = NULL;
    FG_DO(fg_object_type(t, o, &type));
    return missing_attr(t, o, type, name, out, getter);
}

/* What object.__getattribute__ finds. getter: where what has to be called goes (NULL: that is a break). *out NULL and no getter: absent. */
static fg_flow generic_attr(fg_trace *t, fg_value *o, fg_value *type, PyObject *name, fg_value **out, fg_getter *getter)
{
    fg_vitem *item = fg_map_find(&o->map, name, PyObject_Hash(name));
    fg_value *found;
    if (item != NULL && item->value != NULL) {
        *out = item->value;
        return FG_FLOW_OK;
    }
    FG_DO(fg_type_lookup(t, type, o->type, name, &found));
    if (found != NULL && found->real == fg_names.object_class) {
        *out = type;
        return fg_look(t, &found);
    }
    if (found != NULL) {
        FG_DO(pin_descriptor_kind(t, found));
        PyTypeObject *dtype = Py_TYPE(found->real);
        if (dtype->tp_descr_set != NULL) {
            FG_DO(fg_look(t, &found));
            if (dtype == &PyProperty_Type && getter != NULL)
                return property_part(t, found, 0, &getter->func);
            if (dtype == &PyGetSetDescr_Type && is_own_dict(found->real, o))
                return fg_attrs_new(t, o, out);
            if (dtype == &PyMemberDescr_Type)
                return item != NULL ? FG_FLOW_OK : slot_read(t, o, found, name, out);
            bool handled;
            FG_DO(fg_tuple_field(t, o, found, out, &handled));
            if (!handled)
                FG_DO(fg_outer_attr(t, o, found, name, out, &handled));
            if (!handled)
                FG_DO(user_descriptor(t, found, o, type, out, &handled));
            if (handled)
                return FG_FLOW_OK;
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s is a descriptor of type %s", name, o->type->tp_name,
                            dtype->tp_name);
        }
    }
    if (item == NULL) {
        FG_DO(fg_attr_in_instance(t, o, name, out));
        if (*out != NULL) {
            if (found != NULL && found->acc >= 0) { /* what it shadows must stay no data descriptor */
                fg_node node;
                FG_DO(fg_node_of(t, found, &node));
                FG_DO(fg_guard(t, FG_GUARD_TYPE, node, (PyObject *)Py_TYPE(found->real), 0, 0));
            }
            return FG_FLOW_OK;
        }
    }
    return found != NULL ? bind(t, found, o, type, name, out) : FG_FLOW_OK;
}

/* Attribute of an instance; getter and out as for generic_attr. */
static fg_flow instance_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out, fg_getter *getter)
{
    fg_value *type = NULL, *own;
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(way_of_reading(t, type, o->type, &own));
    if (own == NULL) {
        FG_DO(generic_attr(t, o, type, name, out, getter));
        if (*out != NULL || (getter != NULL && getter->func != NULL))
            return FG_FLOW_OK;
        return missing_attr(t, o, type, name, out, getter);
    }
    if (getter != NULL) {
        *getter = (fg_getter){own, name, true};
        return FG_FLOW_OK;
    }
    fg_value *args[2] = {o, fg_value_const(t, name)};
    if (args[1] == NULL)
        return FG_FLOW_ERROR;
    return fg_call_now(t, own, args, 2, NULL, out);
}

/* object.__getattribute__(o, name), as a __getattribute__ in Python calls it. Pushes a frame for a property's getter; then *out is NULL. */
fg_flow fg_attr_load_generic(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    fg_getter getter = {NULL};
    fg_value *type = NULL;
    *out = NULL;
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(generic_attr(t, o, type, name, out, &getter));
    if (getter.func != NULL)
        return fg_call(t, getter.func, &o, 1, NULL, out);
    if (*out == NULL)
        return fg_raise_new(t, PyExc_AttributeError, "'%.50s' object has no attribute '%U'", o->type->tp_name, name);
    return FG_FLOW_OK;
}

static fg_flow module_dict(fg_trace *t, fg_value *m, fg_value **out)
{
    *out = fg_value_lazy(t, FG_ACC_MODULE_DICT, m->node, NULL, 0, PyModule_GetDict(m->real));
    return *out ? fg_look(t, out) : FG_FLOW_ERROR;
}

/* Attribute of a class read through the class itself. */
static fg_flow class_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    PyTypeObject *type = (PyTypeObject *)o->real;
    fg_value *hook = NULL; /* the metaclass's __getattr__, for what is not there */
    if (Py_TYPE(type) != &PyType_Type) {
        PyTypeObject *meta = Py_TYPE(type);
        PyObject *way = fg_py_type_lookup(meta, fg_names.s_getattribute);
        if (way == NULL || !Py_IS_TYPE(way, &PyWrapperDescr_Type) ||
            ((PyWrapperDescrObject *)way)->d_wrapped != (void *)PyType_Type.tp_getattro)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "metaclass %s has its own attribute access", meta->tp_name);
        fg_value *of, *unused; /* a metaclass may grow the name, or another way to read it */
        FG_DO(fg_object_type(t, o, &of));
        FG_DO(fg_type_lookup(t, of, meta, name, &unused));
        FG_DO(fg_type_lookup(t, of, meta, fg_names.s_getattribute, &unused));
        if (unused != NULL)
            FG_DO(fg_look(t, &unused));
        FG_DO(fg_type_lookup(t, of, meta, fg_names.s_getattr, &hook));
    }
    PyObject *in_meta = fg_py_type_lookup(Py_TYPE(type), name);
    if (in_meta != NULL && Py_TYPE(in_meta)->tp_descr_set != NULL) {
        bool handled = false;
        if (in_meta == fg_py_type_lookup(&PyType_Type, name))
            FG_DO(fg_class_field(t, o, name, out, &handled));
        if (handled)
            return FG_FLOW_OK;
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of class %s", name, type->tp_name);
    }
    fg_value *found;
    FG_DO(fg_type_lookup(t, o, type, name, &found));
    if (found == NULL) {
        if (in_meta != NULL || hook != NULL)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of the metaclass of %s", name, type->tp_name);
        *out = NULL;
        return FG_FLOW_OK;
    }
    FG_DO(pin_descriptor_kind(t, found));
    PyTypeObject *dtype = Py_TYPE(found->real);
    if (dtype == &PyProperty_Type || dtype == &PyMemberDescr_Type || dtype == &PyGetSetDescr_Type) {
        *out = found;
        return FG_FLOW_OK;
    }
    return bind(t, found, NULL, o, name, out);
}

static PyObject *own_item(PyTypeObject *type, PyObject *name)
{
    PyObject *dict = fg_type_dict(type);
    return dict ? PyDict_GetItemWithError(dict, name) : NULL;
}

static fg_flow super_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    PyTypeObject *start = (PyTypeObject *)o->a->real;
    fg_value *self = o->b;
    bool on_class = self->kind == FG_V_CONST;
    PyTypeObject *type = on_class ? (PyTypeObject *)self->real : self->type;
    PyObject *mro = type->tp_mro;
    if (mro == NULL) /* its metaclass is working it out */
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "super().%U of class %s, which has no MRO yet", name, type->tp_name);
    Py_ssize_t i = 0, n = PyTuple_GET_SIZE(mro);
    while (i < n && PyTuple_GET_ITEM(mro, i) != (PyObject *)start)
        i++;
    for (i++; i < n; i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *real = own_item(base, name);
        fg_value *base_value = fg_value_const(t, (PyObject *)base);
        if (base_value == NULL)
            return FG_FLOW_ERROR;
        fg_value *found;
        if (real == NULL) {
            if (PyErr_Occurred())
                return FG_FLOW_ERROR;
            continue;
        }
        /* the lookup from this base on finds the same object; bases before it are pinned by looking the name up from each of them */
        if (fg_py_type_lookup(base, name) != real)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "super().%U", name);
        for (Py_ssize_t k = 0; k < i; k++) {
            PyTypeObject *before = (PyTypeObject *)PyTuple_GET_ITEM(mro, k);
            if (own_item(before, name) == NULL && fg_py_type_lookup(before, name) == real) {
                fg_value *before_value = fg_value_const(t, (PyObject *)before), *seen;
                if (before_value == NULL)
                    return FG_FLOW_ERROR;
                FG_DO(fg_type_lookup(t, before_value, before, name, &seen));
                if (seen != NULL)
                    FG_DO(fg_look(t, &seen));
            }
        }
        FG_DO(fg_type_lookup(t, base_value, base, name, &found));
        return bind(t, found, on_class ? NULL : self, on_class ? self : o->c, name, out);
    }
    if (fg_py_type_lookup(&PySuper_Type, name) != NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of super() itself", name);
    *out = NULL;
    return FG_FLOW_OK;
}

fg_flow fg_attr_ask(fg_trace *t, fg_value *o, PyObject *name, fg_value **out, fg_getter *getter)
{
    *out = NULL;
    FG_DO(fg_look(t, &o));
    switch ((fg_vkind)o->kind) {
    case FG_V_TENSOR: return fg_tensor_attr(t, o, name, out);
    case FG_V_OPAQUE:
        if (fg_is_exception(o))
            return fg_exception_attr(t, o, name, out);
        return fg_tensor_limits_attr(t, o, name, out);
    case FG_V_OBJECT:
        if (o->type == &PyModule_Type) {
            fg_value *dict;
            FG_DO(module_dict(t, o, &dict));
            FG_DO(fg_dict_get(t, dict, name, out));
            if (*out == NULL)
                return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "module attribute '%U' is not in the module's dict", name);
            return fg_no_lazy_import(t, name, *out);
        }
        return instance_attr(t, o, name, out, getter);
    case FG_V_CONST:
        if (PyType_Check(o->real))
            return class_attr(t, o, name, out);
        if (PyCode_Check(o->real))
            return fg_code_attr(t, o, name, out);
        if (PyFunction_Check(o->real) || PyCFunction_Check(o->real) || o->type == &PyMethodDescr_Type || o->type == &PyWrapperDescr_Type)
            return fg_callable_attr(t, o, name, out);
        if (fg_is_fold_const(o->real) || fg_py_is_library_constant(o->type)) {
            PyObject *descr = fg_py_type_lookup(o->type, name);
            if (descr == NULL && o->type->tp_dictoffset == 0)
                return FG_FLOW_OK;
            if (descr == NULL) /* a ufunc has a dict of its own */
                return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
            if (Py_TYPE(descr)->tp_descr_set != NULL) { /* x.real, dtype.itemsize, device.type: immutable */
                PyObject *value = PyObject_GetAttr(o->real, name);
                if (value == NULL)
                    return fg_break_on_error(t, FG_BREAK_RAISES, "attribute");
                if (fg_own(t, value) == NULL)
                    return FG_FLOW_ERROR;
                if (!fg_is_fold_const(value) && !PyType_Check(value) && !fg_py_is_library_constant(Py_TYPE(value)))
                    return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
                return (*out = fg_value_const(t, value)) ? FG_FLOW_OK : FG_FLOW_ERROR;
            }
            if (Py_TYPE(descr) != &PyMethodDescr_Type && Py_TYPE(descr) != &PyWrapperDescr_Type)
                return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
            fg_value *func = fg_value_const(t, descr);
            return func ? method_new(t, func, o, name, out) : FG_FLOW_ERROR;
        }
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
    case FG_V_SCALAR:
    case FG_V_LIST:
    case FG_V_TUPLE:
    case FG_V_DICT:
    case FG_V_SET: {
        if (fg_is_own_tuple(o))
            return instance_attr(t, o, name, out, getter);
        PyObject *descr = fg_py_type_lookup(o->type, name);
        if (descr == NULL)
            return FG_FLOW_OK;
        Py_ssize_t field = o->kind == FG_V_TUPLE && o->type != &PyTuple_Type ? fg_py_result_field(o->type, name) : -1;
        if (field >= 0 && field < o->n) {
            *out = o->items[field];
            return FG_FLOW_OK;
        }
        if (Py_TYPE(descr) != &PyMethodDescr_Type && Py_TYPE(descr) != &PyWrapperDescr_Type) {
            if (o->kind == FG_V_SCALAR) {
                FG_DO(fg_concrete(t, o));
                return fg_attr_ask(t, o, name, out, getter);
            }
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
        }
        fg_value *func = fg_value_const(t, descr);
        return func ? method_new(t, func, o, name, out) : FG_FLOW_ERROR;
    }
    case FG_V_VIEW: {
        PyObject *descr = fg_is_attrs(o) ? fg_py_type_lookup(o->type, name) : NULL;
        if (descr == NULL || !Py_IS_TYPE(descr, &PyMethodDescr_Type))
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
        fg_value *func = fg_value_const(t, descr);
        return func ? method_new(t, func, o, name, out) : FG_FLOW_ERROR;
    }
    case FG_V_METHOD: return fg_method_attr(t, o, name, out);
    case FG_V_FUNC: return fg_function_attr(t, o, name, out);
    case FG_V_SUPER: return super_attr(t, o, name, out);
    default: return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type ? o->type->tp_name : "a run-time object");
    }
}

/* --- stores */

static fg_flow emit_store(fg_trace *t, fg_value *o, PyObject *name, fg_value *v)
{
    fg_reg regs[2];
    FG_DO(fg_mutate(t, o));
    FG_DO(fg_materialise(t, v, &regs[0]));
    FG_DO(fg_materialise(t, o, &regs[1]));
    return fg_emit(t, FG_STEP_STORE_ATTR, FG_SF_EFFECT, 0, name, NULL, regs, 2, NULL);
}

static bool is_plain_module_value(const fg_value *v)
{
    return v->kind == FG_V_SCALAR || (v->kind == FG_V_CONST && v->real != Py_None) || v->kind == FG_V_LIST || v->kind == FG_V_TUPLE ||
           v->kind == FG_V_DICT;
}

static fg_flow check_generic_write(fg_trace *t, fg_value *o, fg_value *type, PyObject *name, fg_value *v)
{
    fg_value *found;
    FG_DO(fg_type_lookup(t, type, o->type, v ? fg_names.s_setattr : fg_names.s_delattr, &found));
    if (found == NULL)
        return fg_break(t, FG_BREAK_INTERNAL, "type without __setattr__");
    if (fg_is_nn_module(o->type) && o->node != FG_NODE_NONE && v != NULL) {
        fg_value *module_class, *base;
        if (!is_plain_module_value(v))
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "assignment of a %s to a module attribute",
                            v->type ? v->type->tp_name : "value");
        PyTypeObject *cls = (PyTypeObject *)fg_py_torch_module_class();
        if ((module_class = fg_value_const(t, (PyObject *)cls)) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_type_lookup(t, module_class, cls, fg_names.s_setattr, &base));
        if (base->real != found->real)
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "%s has its own __setattr__", o->type->tp_name);
        FG_DO(fg_look(t, &found));
        FG_DO(fg_guard_const(t, found));
        FG_DO(fg_module_attr(t, o, name, &base)); /* must be no parameter, buffer or submodule */
        if (base != NULL)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "assignment to parameter, buffer or submodule '%U'", name);
        return FG_FLOW_OK;
    }
    if (found->real != (v ? fg_names.object_setattr : fg_py_type_lookup(&PyBaseObject_Type, fg_names.s_delattr)))
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "%s has its own __setattr__", o->type->tp_name);
    return fg_look(t, &found);
}

/* The Python function that a data descriptor stores by, or NULL. */
static fg_flow python_setter(fg_trace *t, fg_value *descr, fg_value **setter)
{
    if (Py_TYPE(descr->real) == &PyProperty_Type)
        return property_part(t, descr, 1, setter);
    if (descr->kind != FG_V_OBJECT || descr->type == NULL)
        return FG_FLOW_OK;
    fg_value *type, *set;
    FG_DO(fg_object_type(t, descr, &type));
    FG_DO(fg_type_lookup(t, type, descr->type, fg_names.s_set, &set));
    if (set == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &set));
    if (set->kind == FG_V_FUNC)
        *setter = set;
    return FG_FLOW_OK;
}

fg_flow fg_attr_store(fg_trace *t, fg_value *o, PyObject *name, fg_value *v)
{
    FG_DO(fg_look(t, &o));
    FG_DO(fg_look(t, &v));
    if (o->kind == FG_V_TENSOR && fg_is_gradient(o, name))
        return fg_gradient_store(t, o, name, v);
    if (o->kind != FG_V_OBJECT)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "assignment to '%U' of %s", name,
                        o->type ? o->type->tp_name : "a run-time object");
    if (o->type == &PyModule_Type) {
        fg_value *dict;
        FG_DO(module_dict(t, o, &dict));
        FG_DO(fg_drop_item(t, dict, name));
        FG_DO(fg_map_set(t, &dict->map, name, PyObject_Hash(name), v, 1));
        FG_DO(fg_mutate(t, dict));
        return emit_store(t, o, name, v);
    }
    fg_value *type, *found;
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(check_generic_write(t, o, type, name, v));
    FG_DO(fg_type_lookup(t, type, o->type, name, &found));
    bool is_slot = false;
    if (found != NULL) {
        FG_DO(pin_descriptor_kind(t, found));
        PyTypeObject *dtype = Py_TYPE(found->real);
        is_slot = dtype == &PyMemberDescr_Type;
        if (dtype->tp_descr_set != NULL) {
            FG_DO(fg_look(t, &found));
            fg_value *setter = NULL, *out;
            FG_DO(python_setter(t, found, &setter));
            if (setter != NULL) {
                fg_value *args[3] = {found, o, v};
                int32_t self = dtype == &PyProperty_Type; /* its fset is a plain function */
                FG_DO(fg_call(t, setter, args + self, 3 - self, NULL, &out));
                if (out == NULL)
                    t->frame->on_result = FG_RESULT_DROP; /* the caller drops what it returns */
                return FG_FLOW_OK;
            }
            PyMemberDef *member = is_slot ? ((PyMemberDescrObject *)found->real)->d_member : NULL;
            if (member == NULL || member->type != T_OBJECT_EX || (member->flags & READONLY))
                return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "assignment to '%U' of %s", name, o->type->tp_name);
        } else {
            fg_node node;
            FG_DO(fg_node_of(t, found, &node));
            if (node != FG_NODE_NONE)
                FG_DO(fg_guard(t, FG_GUARD_TYPE, node, (PyObject *)dtype, 0, 0));
        }
    }
    if (!is_slot && !fg_type_has_instance_dict(o->type))
        return fg_break(t, FG_BREAK_RAISES, "'%s' object has no attribute '%U'", o->type->tp_name, name);
    if (is_slot && fg_map_find(&o->map, name, PyObject_Hash(name)) == NULL) {
        fg_value *old;
        FG_DO(slot_read(t, o, found, name, &old));
    }
    FG_DO(fg_drop_attr(t, o, name));
    if (!fg_is_virtual(o))
        FG_DO(emit_store(t, o, name, v));
    return fg_map_set(t, &o->map, name, PyObject_Hash(name), v, 1);
}

fg_flow fg_attr_delete(fg_trace *t, fg_value *o, PyObject *name)
{
    FG_DO(fg_look(t, &o));
    fg_value *type, *seen;
    if (o->kind != FG_V_OBJECT || o->type == &PyModule_Type || fg_is_nn_module(o->type))
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "del of '%U'", name);
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(check_generic_write(t, o, type, name, NULL));
    FG_DO(fg_type_lookup(t, type, o->type, name, &seen));
    if (seen != NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "del of '%U', which the class has too", name);
    FG_DO(fg_attr_ask(t, o, name, &seen, NULL));
    if (seen == NULL)
        return fg_break(t, FG_BREAK_RAISES, "'%s' object has no attribute '%U'", o->type->tp_name, name);
    FG_DO(fg_drop_attr(t, o, name));
    if (!fg_is_virtual(o)) {
        fg_reg reg;
        FG_DO(fg_mutate(t, o));
        FG_DO(fg_materialise(t, o, &reg));
        FG_DO(fg_emit(t, FG_STEP_DELETE_ATTR, FG_SF_EFFECT, 0, name, NULL, &reg, 1, NULL));
    }
    return fg_map_set(t, &o->map, name, PyObject_Hash(name), NULL, 1);
}
