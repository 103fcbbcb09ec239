/* apiserver/table.h - other forms of an answer: the Table of `kubectl get`, metadata alone. */
#ifndef PL_APISERVER_TABLE_H
#define PL_APISERVER_TABLE_H

#include "apiserver/kinds.h"
#include "apiserver/tree.h"

enum pl_form {
    PL_FORM_OBJECT,  /* as it is */
    PL_FORM_TABLE,   /* as=Table;g=meta.k8s.io */
    PL_FORM_PARTIAL, /* as=PartialObjectMetadata, or ...List */
    PL_FORM_NONE,    /* nothing that we have: 406 */
};

/* What goes with a form: of the request, and of the place in a stream. */
struct pl_form_options {
    enum pl_form form;
    struct pl_str include_object; /* None, Metadata (also when empty), Object */
    bool no_columns;              /* not the first event of a watch: columnDefinitions is null */
    int64_t now_ms;               /* ages count from here */
};

/* The best of what an Accept header allows; an empty one or a wildcard is PL_FORM_OBJECT. */
enum pl_form pl__form_of_accept(struct pl_str accept);

/* The form of `object`, which is one object of the kind or a List of them (it has "items"). May use parts of
 * `object` in place. Never NULL. pl_apiserver_handle() and watches call it for everything but a Status. */
struct pl_tree *pl__form_render(struct pl_arena *a, const struct pl_kind *kind,
                                const struct pl_form_options *options, struct pl_tree *object);

#endif
