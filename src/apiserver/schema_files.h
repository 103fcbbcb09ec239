/* apiserver/schema_files.h - the CRDs of deploy/crd/ and what stands for them for built-in kinds, as they are
 * in the tree, put into the program by tools/embed-schemas.py. Read by schema.c. */
#ifndef PL_APISERVER_SCHEMA_FILES_H
#define PL_APISERVER_SCHEMA_FILES_H

#include "base/str.h"

struct pl_schema_file {
    const char *name;
    struct pl_str yaml; /* one or more documents */
};

extern const struct pl_schema_file pl__schema_files[];
extern const size_t pl__schema_file_count;

#endif
