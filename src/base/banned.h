/* base/banned.h - calls that we do without, as compile errors that say what to use.
 *
 * The build puts this in front of every file in src/ (-include), so it needs no #include. The
 * headers come first: a macro in front of them would break their own declarations. For the same
 * reason a feature macro such as _GNU_SOURCE inside a .c file comes too late; such macros are set
 * in meson.build. */
#ifndef PL_BASE_BANNED_H
#define PL_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PL_BANNED_(text) _Pragma(#text)
#define PL_BANNED(text) PL_BANNED_(GCC error text)

/* clang-format off */
#undef strtok
#undef sscanf
#undef atoi
#undef atol
#undef atoll
#undef atof
#undef strcpy
#undef strncpy
#undef strcat
#undef strncat
#undef sprintf
#undef vsprintf
#undef gets

#define strtok(...)   PL_BANNED("strtok is banned: move a cursor over a struct pl_str")
#define sscanf(...)   PL_BANNED("sscanf is banned: parse a struct pl_str, e.g. pl__str_to_u64")
#define atoi(...)     PL_BANNED("atoi is banned: use pl__str_to_u64, which reports what is no number")
#define atol(...)     PL_BANNED("atol is banned: use pl__str_to_u64, which reports what is no number")
#define atoll(...)    PL_BANNED("atoll is banned: use pl__str_to_u64, which reports what is no number")
#define atof(...)     PL_BANNED("atof is banned: it cannot report an error")
#define strcpy(...)   PL_BANNED("strcpy is banned: use pl__str_copy or pl__buf_add")
#define strncpy(...)  PL_BANNED("strncpy is banned: use pl__str_copy or pl__buf_add")
#define strcat(...)   PL_BANNED("strcat is banned: use pl__buf_add")
#define strncat(...)  PL_BANNED("strncat is banned: use pl__buf_add")
#define sprintf(...)  PL_BANNED("sprintf is banned: use pl__buf_printf or pl__str_format")
#define vsprintf(...) PL_BANNED("vsprintf is banned: use vsnprintf on a bounded buffer")
#define gets(...)     PL_BANNED("gets is banned: it cannot be used safely")
/* clang-format on */

#endif
