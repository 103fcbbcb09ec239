/* tables/rule.h - transition tables as data, and the small loop that reads them.
 *
 * A table has two halves. Facts are bits, computed by code (the only code). Rules are rows: a guard
 * over the facts, and what the row says in each profile. The first row whose guard holds decides;
 * which others held is part of the answer. The engine knows neither Machines nor etcd.
 *
 * Row ids are forever: they appear in output, metrics, events and documents. */
#ifndef PL_TABLES_RULE_H
#define PL_TABLES_RULE_H

#include "base/buf.h"

/* A guard as a row of columns, one for each fact in order: Y must hold, N must not, x does not
 * matter. Trailing x may be left out. */
struct pl_guard {
    uint32_t care;
    uint32_t want;
};

#define PL_CARE_Y 1u
#define PL_CARE_N 1u
#define PL_CARE_x 0u
#define PL_WANT_Y 1u
#define PL_WANT_N 0u
#define PL_WANT_x 0u
#define PL_COLUMNS_(k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, ...)         \
    (k##a | k##b << 1 | k##c << 2 | k##d << 3 | k##e << 4 | k##f << 5 | k##g << 6 | k##h << 7 | \
     k##i << 8 | k##j << 9 | k##l << 10 | k##m << 11 | k##n << 12 | k##o << 13 | k##p << 14 |   \
     k##q << 15 | k##r << 16 | k##s << 17 | k##t << 18 | k##u << 19)
#define PL_COLUMNS(...) PL_COLUMNS_(__VA_ARGS__)
#define GUARD(...)                                                                                 \
    {                                                                                              \
        PL_COLUMNS(PL_CARE_, __VA_ARGS__, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, \
                   x),                                                                             \
            PL_COLUMNS(PL_WANT_, __VA_ARGS__, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,   \
                       x, x, x)                                                                    \
    }
enum { PL_FACT_COUNT_MAX = 20, PL_RULE_COUNT_MAX = 32 };

/* What a row says in one profile. The message may have <placeholders>. Status none: the row sets
 * nothing. */
struct pl_outcome {
    enum pl_status status;
    const char *reason;
    const char *message;
};
#define BOTH(status, reason, message) \
    {                                 \
        { status, reason, message },  \
        {                             \
            status, reason, message   \
        }                             \
    }
#define NOTHING BOTH(PL_STATUS_NONE, "", "")
#define TRUE_ PL_STATUS_TRUE
#define FALSE_ PL_STATUS_FALSE
#define UNKNOWN PL_STATUS_UNKNOWN

enum pl_mode {
    OVERWRITE,   /* set it, whatever stands there */
    KEEP_IF_SET, /* leave it if it is there */
    LEAVE,       /* do not touch it */
};

enum pl_next { NEXT_NONE, NEXT_ERROR, NEXT_30S, NEXT_15S };

enum pl_profile_mask { EVERY_PROFILE = 0, ONLY_TABLES = 1, ONLY_CLUSTER_API = 2 };

struct pl_rule {
    const char *id;
    const char *when; /* the guard in words */
    struct pl_guard guard;
    struct pl_outcome says[PL_PROFILE_COUNT];
    enum pl_next next;
    enum pl_mode mode;
    enum pl_profile_mask profiles; /* a row may exist in one profile only */
    int action;                    /* what a step does, in the terms of its own table */
};

struct pl_table {
    const char *name;
    const char *kind; /* the object it is about */
    const char *summary;
    const char *const *fact_names;
    uint32_t fact_count;
    const struct pl_rule *rules;
    uint32_t rule_count;
    /* Groups of facts of which at most one can hold, and facts that imply another: what a test over
     * all combinations leaves out as impossible. NULL: all combinations are possible. */
    bool (*possible)(uint32_t facts);
    /* A table in front of this one, and the ids its rows go by here; NULL: none. */
    const struct pl_table *front;
    const char *const *front_ids;
};
#define PL_TABLE_RULES(rules_) .rules = (rules_), .rule_count = sizeof(rules_) / sizeof((rules_)[0])
#define PL_TABLE_FACTS(names_) \
    .fact_names = (names_), .fact_count = sizeof(names_) / sizeof((names_)[0])

struct pl_judgement {
    const struct pl_rule *rule; /* the row that decided; NULL: none held */
    uint32_t held;              /* bit i: the guard of rules[i] held */
};

struct pl_judgement pl__judge(const struct pl_table *table, uint32_t facts,
                              enum pl_profile profile);

/* What fills a placeholder. */
struct pl_text {
    const char *name;
    struct pl_str value;
};

/* The message with its placeholders filled from `texts`; one that is not given becomes empty. The
 * result is the template itself, one of the values, or new in the arena. */
struct pl_str pl__message_fill(struct pl_arena *arena, const char *message,
                               const struct pl_text *texts, size_t text_count);

#endif
