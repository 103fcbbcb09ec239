/* The scenes of the tour against the tables: no row is forgotten, no scene waits for one that is not there. */
#include <string.h>

#include "apiserver/kinds.h"
#include "cli/tour.h"
#include "test.h"

enum { FIVE_TABLES = 5 };

static bool in_profile(int profiles, enum pl_profile profile)
{
    return profiles == EVERY_TOUR ||
           (profiles == ONLY_TABLES_TOUR) == (profile == PL_PROFILE_TABLES);
}

/* Whether some row of any table has this id and, if it is named, this guard. */
static bool row_exists(const char *id, const char *guard)
{
    for (size_t table = 0; table < pl_table_count(); table++) {
        for (size_t i = 0; i < pl_table_info(table).row_count; i++) {
            struct pl_row row = pl_table_row(table, i);
            if (strcmp(row.id, id) == 0 && (!guard || strcmp(row.guard, guard) == 0))
                return true;
        }
    }
    return false;
}

static bool list_has(const struct pl_tour_row *rows, const struct pl_row *row,
                     enum pl_profile profile, bool etcd)
{
    for (size_t i = 0; i < TOUR_ROWS_MAX && rows[i].id; i++) {
        if ((rows[i].flags & ROW_ETCD) && !etcd)
            continue;
        if (strcmp(rows[i].id, row->id) == 0 && in_profile(rows[i].profiles, profile) &&
            (!rows[i].guard || strcmp(rows[i].guard, row->guard) == 0))
            return true;
    }
    return false;
}

static bool played(const struct pl_row *row, enum pl_profile profile, bool etcd)
{
    for (size_t i = 0; i < pl__scene_count; i++) {
        const struct pl_scene *s = &pl__scenes[i];
        bool on = in_profile(s->profiles, profile) && (s->etcd == 0 || (s->etcd > 0) == etcd);
        if (on &&
            (list_has(s->rows, row, profile, etcd) || list_has(s->healed, row, profile, etcd)))
            return true;
    }
    return false;
}

static bool excused(const struct pl_row *row, bool etcd)
{
    for (size_t i = 0; i < pl__unreachable_count; i++) {
        const struct pl_tour_unreachable *u = &pl__unreachable[i];
        if (strcmp(u->id, row->id) == 0 && (!u->guard || strcmp(u->guard, row->guard) == 0) &&
            (!u->without_etcd || !etcd))
            return true;
    }
    return false;
}

/* A row that sets nothing in this profile, but something in the other, is the other's. */
static bool is_of_profile(const struct pl_row *row, enum pl_profile profile)
{
    const char *here = row->outcome[profile].status;
    const char *there = row->outcome[profile == PL_PROFILE_TABLES].status;

    return *here || !*there;
}

static void every_row_is_played(enum pl_profile profile, bool etcd)
{
    for (size_t table = 0; table < FIVE_TABLES; table++) {
        for (size_t i = 0; i < pl_table_info(table).row_count; i++) {
            struct pl_row row = pl_table_row(table, i);
            if (!is_of_profile(&row, profile))
                continue;
            CASE("%s (%s) is played in profile %s%s", row.id, row.guard, pl_profile_name(profile),
                 etcd ? "" : ", without etcd")
            CHECK(played(&row, profile, etcd) || excused(&row, etcd));
        }
    }
}

static void check_rows(const struct pl_tour_row *rows)
{
    for (size_t i = 0; i < TOUR_ROWS_MAX && rows[i].id; i++) {
        if (!row_exists(rows[i].id, rows[i].guard))
            test_fail(__FILE__, __LINE__, "no row %s (%s)", rows[i].id,
                      rows[i].guard ? rows[i].guard : "any");
        /* All others last long enough to be stored, and have to be. */
        CHECK(!(rows[i].flags & ROW_FLEETING) || strcmp(rows[i].id, "Deleting/2") == 0 ||
              strcmp(rows[i].id, "MachineDeployment.Remediating/4") == 0);
    }
}

static bool kind_exists(const char *name)
{
    for (size_t i = 0; i < pl__kind_count; i++) {
        if (strcmp(pl__kinds[i].kind, name) == 0)
            return true;
    }
    return false;
}

static void check_steps(const struct pl_tour_step *steps)
{
    for (size_t i = 0; i < TOUR_STEPS_MAX && steps[i].verb != TOUR_NOTHING; i++) {
        bool needs_body = steps[i].verb != TOUR_DELETE && steps[i].verb != TOUR_FAULT;
        CHECK(kind_exists(steps[i].kind));
        CHECK(!needs_body || steps[i].body);
        CHECK(!steps[i].owner || strchr(steps[i].owner, '/'));
    }
}

int main(void)
{
    for (int etcd = 0; etcd < 2; etcd++) {
        every_row_is_played(PL_PROFILE_TABLES, etcd);
        every_row_is_played(PL_PROFILE_CLUSTER_API_1_12, etcd);
    }
    for (size_t i = 0; i < pl__unreachable_count; i++) {
        const struct pl_tour_unreachable *u = &pl__unreachable[i];
        CASE("%s is excused, and there is such a row", u->id)
        CHECK(row_exists(u->id, u->guard));
        CHECK(u->why && *u->why);
    }
    for (size_t i = 0; i < pl__scene_count; i++) {
        const struct pl_scene *s = &pl__scenes[i];
        CASE("scene \"%s\" names what there is", s->title)
        check_rows(s->rows);
        check_rows(s->healed);
        check_steps(s->steps);
        check_steps(s->undo);
        CHECK(s->rows[0].id);
        /* Rows of health, unless what heals is that nothing is left. */
        CHECK(!s->heals || s->healed[0].id || s->undo[0].verb != TOUR_NOTHING);
        CHECK(s->timeout_s > 0);
    }
    return test_end("tour_scenes");
}
