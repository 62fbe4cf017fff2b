# What the build needs from outside, each with the Debian package that has it, so that a missing one is one clear line.

function(framegate_need found package what)
  if(NOT ${found})
    message(FATAL_ERROR "framegate: ${what} not found. On Debian: apt-get install ${package}")
  endif()
endfunction()

# xxHash is used header-only.
find_path(FRAMEGATE_XXHASH_INCLUDE xxhash.h)
framegate_need(FRAMEGATE_XXHASH_INCLUDE libxxhash-dev "the header xxhash.h")

find_package(Threads REQUIRED)

if(FRAMEGATE_PYTHON)
  set(Python_FIND_VIRTUALENV FIRST)
  set(Python_FIND_STRATEGY LOCATION)
  find_package(Python COMPONENTS Interpreter QUIET)
  framegate_need(Python_Interpreter_FOUND python3 "a Python interpreter")
  if(Python_VERSION VERSION_LESS 3.11)
    message(FATAL_ERROR "framegate: needs CPython 3.11 or newer, found ${Python_VERSION} (${Python_EXECUTABLE}). "
                        "Name another one with -DPython_EXECUTABLE=/path/to/python3")
  endif()
  if(NOT Python_INTERPRETER_ID STREQUAL "Python")
    message(WARNING "framegate: made for CPython; this interpreter calls itself ${Python_INTERPRETER_ID}")
  endif()
  set(FRAMEGATE_VERSION_TAG "v${Python_VERSION_MAJOR}${Python_VERSION_MINOR}")
  set(FRAMEGATE_VERSION_DIR "${PROJECT_SOURCE_DIR}/runtime/cpython/${FRAMEGATE_VERSION_TAG}")
  # A version's folder may be there before everything works on it.
  set(FRAMEGATE_UNFINISHED_VERSIONS)
  if(NOT IS_DIRECTORY "${FRAMEGATE_VERSION_DIR}")
    file(GLOB known RELATIVE "${PROJECT_SOURCE_DIR}/runtime/cpython" "${PROJECT_SOURCE_DIR}/runtime/cpython/v[0-9]*")
    if(FRAMEGATE_UNFINISHED_VERSIONS)
      list(REMOVE_ITEM known ${FRAMEGATE_UNFINISHED_VERSIONS})
    endif()
    list(JOIN known ", " known)
    message(FATAL_ERROR "framegate: CPython ${Python_VERSION} is not supported: there is no runtime/cpython/${FRAMEGATE_VERSION_TAG}. "
                        "Supported: ${known}. docs/howto/support-a-new-cpython.md says what a new version needs")
  endif()

  if(FRAMEGATE_VERSION_TAG IN_LIST FRAMEGATE_UNFINISHED_VERSIONS AND NOT FRAMEGATE_UNFINISHED)
    message(FATAL_ERROR "framegate: CPython ${Python_VERSION} is not supported yet: runtime/cpython/${FRAMEGATE_VERSION_TAG} is unfinished. "
                        "To work on it, configure with -DFRAMEGATE_UNFINISHED=ON")
  endif()

  find_package(Python COMPONENTS Interpreter Development.Module NumPy QUIET)
  framegate_need(Python_Development.Module_FOUND "python3-dev (or the headers of the interpreter in use)"
                 "the headers of Python ${Python_VERSION} (${Python_EXECUTABLE})")
  if(NOT Python_NumPy_FOUND)
    message(FATAL_ERROR "framegate: NumPy's headers not found for ${Python_EXECUTABLE}. Install it: ${Python_EXECUTABLE} -m pip install numpy")
  endif()
  if(FRAMEGATE_TESTS OR FRAMEGATE_BENCH OR FRAMEGATE_FUZZ)
    find_package(Python COMPONENTS Interpreter Development.Module Development.Embed NumPy QUIET)
    framegate_need(Python_Development.Embed_FOUND "libpython3-dev (or build the interpreter with --enable-shared)"
                   "libpython${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}, which tests and benchmarks embed,")
  endif()
  # Programs that embed the interpreter find its library and the packages of the environment that the build was configured with.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import sys, sysconfig; print(sys.base_prefix, sysconfig.get_paths()['purelib'], int(hasattr(sys, 'gettotalrefcount')), int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), sep=';')"
    OUTPUT_VARIABLE where OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  list(GET where 0 FRAMEGATE_PYTHON_HOME)
  list(GET where 1 FRAMEGATE_PYTHON_PACKAGES)
  list(GET where 2 FRAMEGATE_PYTHON_IS_DEBUG)
  list(GET where 3 without_gil)
  if(without_gil)
    message(FATAL_ERROR "framegate: ${Python_EXECUTABLE} is built without the GIL, which is not supported")
  endif()
endif()

if(FRAMEGATE_TESTS)
  find_path(FRAMEGATE_CMOCKA_INCLUDE cmocka.h)
  find_library(FRAMEGATE_CMOCKA_LIBRARY cmocka)
  framegate_need(FRAMEGATE_CMOCKA_INCLUDE libcmocka-dev "the header cmocka.h")
  framegate_need(FRAMEGATE_CMOCKA_LIBRARY libcmocka-dev "the library cmocka")
endif()
if(FRAMEGATE_BENCH)
  find_package(benchmark QUIET)
  framegate_need(benchmark_FOUND libbenchmark-dev "Google Benchmark")
endif()
if(FRAMEGATE_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "framegate: the fuzz targets need clang (libFuzzer). On Debian: apt-get install clang-14 libclang-rt-14-dev, "
                      "then configure with CC=clang-14")
endif()
