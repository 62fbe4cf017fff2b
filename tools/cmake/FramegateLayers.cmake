# The layers, lowest first. FRAMEGATE_LAYERS holds those that have sources.

add_library(framegate_flags INTERFACE)
target_include_directories(framegate_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_include_directories(framegate_flags SYSTEM INTERFACE "${FRAMEGATE_XXHASH_INCLUDE}")
target_compile_options(framegate_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Werror=implicit-function-declaration;-Werror=incompatible-pointer-types;-Werror=switch>
  # Guards compare memory that CPython writes through other types; its own build has the same flag.
  -fno-strict-aliasing
  $<$<BOOL:${FRAMEGATE_LIBRARIES}>:-fno-semantic-interposition>
  $<$<BOOL:${FRAMEGATE_WERROR}>:-Werror>)
target_link_libraries(framegate_flags INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
if(FRAMEGATE_DEBUG)
  target_compile_definitions(framegate_flags INTERFACE FRAMEGATE_DEBUG=1)
  target_compile_options(framegate_flags INTERFACE -g3 -O1 -fno-omit-frame-pointer)
endif()
if(FRAMEGATE_PYTHON_IS_DEBUG)
  # Debian's debug headers are those of its release build but for pyconfig.h, which they find beside themselves: the wrong one.
  target_compile_definitions(framegate_flags INTERFACE Py_DEBUG=1)
endif()
if(FRAMEGATE_SANITIZE)
  # One libc block per arena block, so that an overrun or a use after rewind is seen.
  target_compile_definitions(framegate_flags INTERFACE FG_ALLOC_LIBC_BLOCKS=1)
  target_compile_options(framegate_flags INTERFACE -fsanitize=${FRAMEGATE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(framegate_flags INTERFACE -fsanitize=${FRAMEGATE_SANITIZE})
endif()
if(FRAMEGATE_FUZZ)
  # Every layer counts its edges: without this libFuzzer sees nothing but the target's own file and mutates blindly.
  target_compile_options(framegate_flags INTERFACE $<$<C_COMPILER_ID:Clang>:-fsanitize=fuzzer-no-link>)
endif()
set(framegate_lto_flags "")
if(FRAMEGATE_LTO AND NOT FRAMEGATE_SANITIZE)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # Fat objects: the tests link the plain machine code and are spared the whole-program step.
    set(framegate_lto_flags -flto=auto -ffat-lto-objects)
  elseif(CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(STATUS "framegate: link-time optimisation is only set up for GCC; building without")
  endif()
endif()

set(FRAMEGATE_LAYERS "")

# framegate_layer(name folder...): a static library of the .c files directly in the folders, on top of the layers before it.
function(framegate_layer name)
  set(sources "")
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.c")
    list(APPEND sources ${found})
  endforeach()
  if(NOT sources)
    message(STATUS "framegate: layer ${name} has no sources yet")
    return()
  endif()
  set(target framegate_${name})
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC framegate_flags)
  target_compile_options(${target} PRIVATE ${framegate_lto_flags})
  foreach(lower IN LISTS FRAMEGATE_LAYERS)
    target_link_libraries(${target} PUBLIC framegate_${lower})
  endforeach()
  if(NOT name MATCHES "^(base|cache)$")
    target_include_directories(${target} SYSTEM PUBLIC ${Python_INCLUDE_DIRS})
  endif()
  list(APPEND FRAMEGATE_LAYERS ${name})
  set(FRAMEGATE_LAYERS "${FRAMEGATE_LAYERS}" PARENT_SCOPE)
endfunction()

framegate_layer(base runtime/base)
framegate_layer(cache cache)
if(FRAMEGATE_PYTHON)
  framegate_layer(cpython runtime/cpython runtime/cpython/${FRAMEGATE_VERSION_TAG})
  framegate_layer(guards guards)
  if(TARGET framegate_guards)
    target_include_directories(framegate_guards SYSTEM PUBLIC ${Python_NumPy_INCLUDE_DIRS})
  endif()
  framegate_layer(hook runtime/hook)
  framegate_layer(codegen codegen)
  framegate_layer(tracer tracer)
endif()
