# find_package(tk): the compiler as `tk::tk`; `tk_add_kernels`, which puts the kernels of a file into a program; and
# `tk::tklang`, the library that launches kernels of bundles (`tklang.h`).
#
#     find_package(tk REQUIRED)
#     add_executable(app main.c)
#     tk_add_kernels(app kernels/softmax.tk TARGETS sm_90a sm_80)
#
# builds the kernels when the file, or the compiler, has changed. `softmax.h` declares their functions. Options:
#
#     TARGETS ..   the GPUs (`tk build --target`), all of one vendor
#     PREFIX name  what the names of functions begin with, instead of `tk`
#     SET ..       values of compile-time parameters, NAME=VALUE
#     DEPENDS ..   files that it imports
#     OPTIONS ..   other options of `tk build`
get_filename_component(_tk_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_program(TK_EXECUTABLE tk HINTS "${_tk_prefix}/bin" NO_DEFAULT_PATH)
find_program(TK_EXECUTABLE tk)
if(NOT TARGET tk::tklang AND EXISTS "${_tk_prefix}/lib/libtklang.so.0")
    add_library(tk::tklang SHARED IMPORTED GLOBAL)
    set_target_properties(tk::tklang PROPERTIES
        IMPORTED_LOCATION "${_tk_prefix}/lib/libtklang.so.0"
        IMPORTED_SONAME libtklang.so.0
        INTERFACE_INCLUDE_DIRECTORIES "${_tk_prefix}/include")
endif()
unset(_tk_prefix)
if(NOT TK_EXECUTABLE)
    set(tk_FOUND FALSE)
    set(tk_NOT_FOUND_MESSAGE "the compiler tk is neither in this installation nor in PATH; set TK_EXECUTABLE to it")
    return()
endif()
if(NOT TARGET tk::tk)
    add_executable(tk::tk IMPORTED GLOBAL)
    set_target_properties(tk::tk PROPERTIES IMPORTED_LOCATION "${TK_EXECUTABLE}")
endif()

function(tk_add_kernels target file)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "PREFIX" "TARGETS;SET;DEPENDS;OPTIONS")
    if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "tk_add_kernels: what is ${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}?")
    endif()
    if(NOT arg_TARGETS)
        message(FATAL_ERROR "tk_add_kernels: no TARGETS, such as sm_90a")
    endif()
    get_filename_component(source "${file}" ABSOLUTE)
    get_filename_component(name "${file}" NAME_WLE)
    get_target_property(home "${target}" SOURCE_DIR)
    if(NOT home STREQUAL CMAKE_CURRENT_SOURCE_DIR)
        message(FATAL_ERROR "tk_add_kernels: ${target} is of the folder ${home}; call it there")
    endif()
    if(NOT EXISTS "${source}")
        message(FATAL_ERROR "tk_add_kernels: there is no ${source}")
    endif()
    get_target_property(type "${target}" TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
        message(FATAL_ERROR "tk_add_kernels: ${target} has no object files; use a static library")
    endif()
    # The headers of two files of one name are told apart by a folder with the prefix: `#include "mine/softmax.h"`.
    set(root "${CMAKE_CURRENT_BINARY_DIR}/tk/${target}")
    string(JOIN "/" folder "${root}" ${arg_PREFIX})
    set(arguments "")
    foreach(gpu IN LISTS arg_TARGETS)
        list(APPEND arguments --target "${gpu}")
    endforeach()
    foreach(value IN LISTS arg_SET)
        list(APPEND arguments --set "${value}")
    endforeach()
    if(arg_PREFIX)
        list(APPEND arguments --prefix "${arg_PREFIX}")
    endif()
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    set(language C)
    if(NOT "C" IN_LIST languages)
        set(language CXX)
    endif()
    # A file of binaries, where the assembler includes it: text takes the compiler three times as long.
    set(binaries "")
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_${language}_COMPILER_ID MATCHES "^(GNU|Clang)$")
        set(binaries "${folder}/${name}.c.bin")
        list(APPEND arguments --incbin)
    endif()
    add_custom_command(
        OUTPUT "${folder}/${name}.c" "${folder}/${name}.h" ${binaries}
        COMMAND tk::tk build "${source}" --emit header -o "${folder}" ${arguments} ${arg_OPTIONS}
        DEPENDS "${source}" ${arg_DEPENDS} tk::tk
        COMMENT "Compiling kernels of ${file}"
        VERBATIM)
    target_sources("${target}" PRIVATE "${folder}/${name}.c")
    # What the file has of its own has the same names in others.
    set_source_files_properties("${folder}/${name}.c" PROPERTIES
        SKIP_UNITY_BUILD_INCLUSION ON LANGUAGE ${language} OBJECT_DEPENDS "${binaries}"
        COMPILE_DEFINITIONS "TK_BINARIES=\"${folder}/${name}.c.bin\"")
    target_include_directories("${target}" PUBLIC "$<BUILD_INTERFACE:${folder};${root}>")
    target_link_libraries("${target}" PRIVATE ${CMAKE_DL_LIBS})
endfunction()
