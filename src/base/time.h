/* base/time.h - instants as milliseconds since 1970, UTC. No clock: time always comes in from outside.
 *
 * 0 means "no such time": a timestamp at the very first millisecond of 1970 reads as absent. */
#ifndef PL_BASE_TIME_H
#define PL_BASE_TIME_H

#include "base/buf.h"
#include "base/str.h"

/* RFC 3339 as Kubernetes writes it (and with fractions, cut to milliseconds, and offsets), years
 * 0001 to 9999 in UTC. False when it is not one. */
bool pl__time_parse(struct pl_str text, int64_t *ms);

/* "2026-11-15T02:00:00Z": whole seconds (rounded down), UTC. Nothing for 0; what lies outside the
 * years 0001 to 9999 prints as the nearest second inside. */
void pl__time_add(struct pl_buf *b, int64_t ms);

/* A duration as Go prints one of whole seconds: "10m0s", "2h0m0s", "45s". */
void pl__duration_add(struct pl_buf *b, int64_t seconds);

/* A Go duration as v1beta1 objects carry it ("2h30m", "1.5s", "0s") to whole seconds, cut towards
 * 0. False when Go would refuse it; its limit is about 292 years. */
bool pl__duration_parse(struct pl_str text, int64_t *seconds);

/* An age as kubectl shows it: "12s", "4m30s", "3h", "2d"; "<invalid>" two seconds or more before 0. */
void pl__age_add(struct pl_buf *b, int64_t ms);

#endif
