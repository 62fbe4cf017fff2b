"""Which modules of CPython's test suite framegate.testing.cpython runs, and which of their tests may come out otherwise."""

MODULES = """
    test_grammar test_scope test_generators test_exceptions test_dict test_list test_set test_tuple test_int test_float test_string test_unicode
    test_fstring test_format test_slice test_range test_enumerate test_builtin test_call test_keywordonlyarg test_positional_only_arg test_unpack
    test_augassign test_compare test_richcmp test_contains test_iter test_itertools test_functools test_collections test_dataclasses test_enum
    test_property test_descr test_class test_super test_with test_contextlib test_patma test_dictcomps test_named_expressions test_raise test_opcodes
    test_operator test_bool test_complex test_math test_sort test_bisect test_heapq test_copy test_string_literals test_traceback test_sys_settrace
    test_frame test_types test_typing test_weakref test_baseexception test_exception_variations test_exception_group test_except_star
    test_exception_hierarchy test_binop test_bytes test_deque test_ordered_dict test_defaultdict test_userdict test_userlist test_dictviews
    test_index test_long test_numeric_tower test_fractions test_decimal test_statistics test_random test_csv test_re test_textwrap test_pprint
    test_struct test_array test_memoryview test_hash test_isinstance test_subclassinit test_abc test_typechecks test_dynamic
    test_dynamicclassattribute test_funcattrs test_decorators test_global test_pow test_print test_reprlib test_queue test_calendar test_datetime
    test_difflib test_graphlib test_ipaddress test_urlparse test_shlex test_argparse test_configparser test_coroutines test_asyncgen test_yield_from
    test_syntax test_warnings test_weakset test_gc test_code test_dis test_sys test_unary test_userstring test_copyreg test_thread test_context
    test_ast test_compile test_peepholer test_colorsys test_base64 test_binascii test_cmath test_sched test_stat test_tokenize
    test_type_annotations test_type_aliases test_getopt test_glob test_fnmatch test_html test_htmlparser test_keyword test_linecache test_locale
    test_mimetypes test_optparse test_plistlib test_quopri test_pyclbr test_secrets test_shelve test_stringprep test_strftime test_strtod
    test_timeit test_tracemalloc test_uuid test_wave test_xml_etree test_time test_minidom test_pickle test_logging test_tempfile test_zlib
    test_threading test_io test_zipfile
""".split()

# A few seconds together.
QUICK = "test_scope test_super test_iter test_exception_hierarchy test_funcattrs test_dynamic test_augassign".split()

_IDENTITY = "which object an immutable number, string or tuple is"
_REFCOUNT = "counts references to an object that entries have as a constant"
_LENT = "counts the references of an argument, which the caller keeps one of while any evaluator of frames is installed"
_GATE = "looks at a function's own type, name or pickled form, and a gate is another object"

# (regular expression of the whole name of a test, modes, reason)
KNOWN: list[tuple[str, str, str]] = [
    (r"test_dict\.DictTest\.test_str_nonstr", "tests all intercept", _IDENTITY),
    (r"test_unicode\.UnicodeTest\.test_getnewargs", "tests all intercept", _IDENTITY),
    (r"test_(list|tuple|deque|userlist)\.\w+\.test_repeat", "tests all intercept", _IDENTITY),
    (r"test_operator\.\w+\.test_is(_not)?", "tests all intercept", _IDENTITY),
    (r"test_memoryview\.\w+\.test_getbuffer", "tests all intercept", _REFCOUNT),
    (r"test_array\.\w+\.test_bug_782369", "tests all intercept", _REFCOUNT),
    (r"test_weakref\.ReferencesTestCase\.test_cfunction", "tests all intercept", _REFCOUNT),
    (r"test_descr\.ClassPropertiesAndMethods\.test_slots", "tests all intercept", "counts the objects of the process"),
    (r"test_descr\.SharedKeyTests\.test_subclasses", "tests all intercept", "the size of an instance dict, which depends on how attributes came to be in it"),
    (
        r"test_dict\.DictTest\.test_reversed_dict_after_clear_and_restore",
        "tests all intercept",
        "gaps in the table of a dict, which one that a trace has made does not have",
    ),
    (r"test_functools\.\w+\.test_(pickle|repr)", "all", _GATE),
    (r"test_dis\.Dis\w+\.test_(disassemble_class|loop_quicken|super_instructions)", "all", _GATE + "; bytecode that has not been warmed up"),
    (r"test_pyclbr\.PyclbrTest\.test_others", "all", _GATE),
    (r"test_tracemalloc\.TestTracemallocEnabled\.\w+", "tests all intercept", "where and whether memory is allocated for values that are known when a trace is made"),
    (r"test_pprint\.QueryTestCase\.test_\w*dataclass\w*", "all", _GATE),
    (r"test_list\.ListTest\.test_list_overwrite_local", "intercept", _LENT),
    (r"test_call\.TestRecursion\.test_super_deep", "intercept", "recursion takes C stack while any evaluator of frames is installed"),
    (r"test_int\.\w+\.test_denial_of_service_prevented_\w+", "tests all intercept", "measures time, and skips where the machine is slow"),
]
