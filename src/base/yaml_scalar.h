/* base/yaml_scalar.h - what a YAML scalar without quotes means.
 *
 * The rules are those of sigs.k8s.io/yaml, by which kubectl and every controller read their input:
 * YAML 1.1's words (yes, no, on, off, y, n among the booleans), whole numbers in four bases with
 * underscores, and no sexagesimals. Unlike there, a number keeps all the digits that were written:
 * they are carried over as text, never through a double. */
#ifndef PL_BASE_YAML_SCALAR_H
#define PL_BASE_YAML_SCALAR_H

#include "base/str.h"

enum pl_yaml_kind {
    PL_YAML_NULL,
    PL_YAML_TRUE,
    PL_YAML_FALSE,
    PL_YAML_INT,
    PL_YAML_FLOAT, /* written with a point or an exponent */
    PL_YAML_STRING,
};

struct pl_yaml_scalar {
    enum pl_yaml_kind kind;
    struct pl_str text; /* of a number: as JSON writes it; of a string: its bytes */
};

enum pl_yaml_resolved {
    PL_YAML_IS_SCALAR,    /* null, a boolean or a number: `*s` is set */
    PL_YAML_IS_TEXT,      /* nothing but text */
    PL_YAML_IS_NOT_JSON,  /* an infinity or "not a number" */
    PL_YAML_IS_TOO_LARGE, /* a number in base 2, 8 or 16 past 64 bits */
};

/* Never gives a string: what to do with text is the caller's. A number's text lies in the arena or
 * is a part of `text`. */
enum pl_yaml_resolved pl__yaml_resolve(struct pl_arena *a, struct pl_str text,
                                       struct pl_yaml_scalar *s);

#endif
