# The C libraries for other programs, install component `c`:
#
#   framegate-cache   cache and runtime/base; no Python
#   framegate         the same, and runtime/cpython and guards; a program links one of the two
#
# What is exported is what the lists below name. Neither library has malloc's names or links an allocator: see runtime/base/alloc.c.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(framegate_cache_headers cache/cache.h cache/epoch.h runtime/base/alloc.h runtime/base/atomics.h runtime/base/status.h runtime/base/errors.def)
set(framegate_guards_headers guards/guard_program.h guards/guard_desc.h guards/guard_tensor.h guards/guard_view.h guards/accessors.def
    guards/guard_kinds.def runtime/cpython/words.h runtime/cpython/dict.h)
# The public functions of a header are its prototypes; what is only for other layers of ours is not exported.
set(framegate_cache_exports fg_cache_* fg_epoch_* fg_malloc fg_calloc fg_realloc fg_free fg_usable_size fg_alloc_table_get fg_alloc_table_set
    fg_status_text)
set(framegate_guards_exports
    fg_desc_new fg_desc_free fg_desc_names_set fg_desc_source fg_desc_guard fg_desc_relation fg_desc_output fg_desc_n_outputs fg_desc_mark_get
    fg_desc_rewind fg_desc_source_str fg_desc_check fg_desc_explain fg_desc_tree_str fg_desc_to_text fg_desc_from_text fg_desc_n_guards
    fg_desc_nbytes fg_desc_on_death fg_program_build fg_program_free fg_program_max_inputs fg_program_nbytes fg_program_eval fg_eval_release
    fg_tensor_init fg_tensor_adaptor_find fg_tensor_meta_same fg_torch_state_read)

set(FRAMEGATE_INCLUDE_FOLDER "${CMAKE_INSTALL_INCLUDEDIR}/framegate")
set(FRAMEGATE_CONFIG_FOLDER "${CMAKE_INSTALL_LIBDIR}/cmake/framegate")

function(framegate_install_headers)
  foreach(header IN LISTS ARGN)
    get_filename_component(folder "${header}" DIRECTORY)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${FRAMEGATE_INCLUDE_FOLDER}/${folder}" COMPONENT c)
  endforeach()
endfunction()

# framegate_library(target export file layers exports): a static and a shared library of the layers' objects, with its pkg-config file.
function(framegate_library target export file layers exports)
  set(objects "")
  foreach(layer IN LISTS layers)
    list(APPEND objects $<TARGET_OBJECTS:framegate_${layer}>)
  endforeach()
  list(JOIN exports ";\n    " names)
  set(script "${PROJECT_BINARY_DIR}/${file}.map")
  file(CONFIGURE OUTPUT "${script}" CONTENT "{\n  global:\n    @names@;\n  local:\n    *;\n};\n" @ONLY)
  add_library(${target}_static STATIC ${objects})
  add_library(${target}_shared SHARED ${objects})
  set_target_properties(${target}_static PROPERTIES EXPORT_NAME ${export}_static)
  set_target_properties(${target}_shared PROPERTIES EXPORT_NAME ${export} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                        LINK_DEPENDS "${script}")
  target_link_options(${target}_shared PRIVATE "LINKER:--version-script=${script}" LINKER:-Bsymbolic-functions)
  foreach(kind static shared)
    set_target_properties(${target}_${kind} PROPERTIES OUTPUT_NAME ${file} LINKER_LANGUAGE C)
    target_include_directories(${target}_${kind} INTERFACE "$<INSTALL_INTERFACE:${FRAMEGATE_INCLUDE_FOLDER}>")
    target_link_libraries(${target}_${kind} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
  endforeach()
  install(TARGETS ${target}_static ${target}_shared EXPORT framegate_${export}_targets COMPONENT c
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT c ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT framegate_${export}_targets NAMESPACE framegate:: FILE framegate-${export}.cmake DESTINATION "${FRAMEGATE_CONFIG_FOLDER}"
          COMPONENT c)
  configure_file("${PROJECT_SOURCE_DIR}/tools/cmake/framegate.pc.in" "${PROJECT_BINARY_DIR}/${file}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${file}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT c)
endfunction()

set(what "Lock-free cache of a few entries under one key")
set(python_flags "")
framegate_library(framegate_c_cache cache framegate-cache "base;cache" "${framegate_cache_exports}")
framegate_install_headers(${framegate_cache_headers})
if(FRAMEGATE_PYTHON)
  set(what "Guard programs over Python objects, with the cache")
  set(python_flags " -I${Python_INCLUDE_DIRS}")
  framegate_library(framegate_c_guards guards framegate "base;cache;cpython;guards" "${framegate_cache_exports};${framegate_guards_exports}")
  # The interpreter's own symbols come from the program: it embeds Python, or Python has loaded it.
  target_link_options(framegate_c_guards_shared PRIVATE LINKER:--unresolved-symbols=ignore-all)
  framegate_install_headers(${framegate_guards_headers})
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/tools/cmake/framegate-config.cmake.in" "${PROJECT_BINARY_DIR}/framegate-config.cmake"
                              INSTALL_DESTINATION "${FRAMEGATE_CONFIG_FOLDER}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/framegate-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/framegate-config.cmake" "${PROJECT_BINARY_DIR}/framegate-config-version.cmake"
        DESTINATION "${FRAMEGATE_CONFIG_FOLDER}" COMPONENT c)
