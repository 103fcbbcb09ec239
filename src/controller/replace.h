/* controller/replace.h - the Machine that takes the place of a remediated one (semantics section 11).
 *
 * Pure: texts of the API server in, paths and bodies of requests out. Three objects are made, all of
 * one name and in this order: the infrastructure machine (a clone of its template), the KubeadmConfig,
 * the Machine. The name comes from the KubeadmControlPlane's uid and the timestamp of its
 * remediation-in-progress record, so a repeat after a crash asks for the same objects again and meets
 * AlreadyExists instead of making others. The Machine comes last: whoever sees it sees a whole set.
 *
 *     pl__replacement_read(&r, arena, kcp, cluster_name, &err)      GET of the KubeadmControlPlane
 *     GET pl__replacement_group_path(&r)    -> pl__replacement_take_group()      which version is served
 *     GET pl__replacement_version_path(&r)  -> pl__replacement_take_resources()  under which plurals
 *     GET pl__replacement_template_path(&r) -> pl__replacement_infra_body()
 *     POST pl__replacement_collection_path(&r, REPLACE_INFRA)   that body
 *     POST ... REPLACE_CONFIG   pl__replacement_config_body()
 *     POST ... REPLACE_MACHINE  pl__replacement_machine_body()
 *
 * A POST that is answered by 409 AlreadyExists: GET pl__replacement_object_path() and ask
 * pl__replacement_existing(). A failure before the Machine is made: DELETE the object paths of what was
 * made, the last one first.
 *
 * What a template or a kubeadmConfigSpec holds that is not changed here goes over byte for byte:
 * unknown fields, numbers of any size, the order of keys. Everything is bounded and checked before it
 * becomes part of a path: whoever may write a KubeadmControlPlane must not choose what we ask for. */
#ifndef PL_CONTROLLER_REPLACE_H
#define PL_CONTROLLER_REPLACE_H

#include "base/error.h"
#include "base/json.h"
#include "model/objects.h"

/* Labels or annotations, each key once. */
struct pl_pair {
    struct pl_str key;
    struct pl_str value;
};
struct pl_pairs {
    struct pl_pair *items;
    uint32_t count;
    uint32_t capacity;
};

/* What is made, in the order of making. */
enum pl_replace_object { REPLACE_INFRA, REPLACE_CONFIG, REPLACE_MACHINE, REPLACE_COUNT };

struct pl_replacement {
    struct pl_arena *arena;
    struct pl_str name; /* of everything that is made */
    struct pl_str cluster_name;

    /* Of the KubeadmControlPlane. */
    struct pl_str kcp_name, namespace_, uid, version;
    struct pl_str in_progress;           /* the record, as it is stored */
    struct pl_str infra_group;           /* spec.machineTemplate.spec.infrastructureRef */
    struct pl_str template_kind;         /* "DockerMachineTemplate" */
    struct pl_str template_name;         /* */
    struct pl_str infra_kind;            /* "DockerMachine" */
    struct pl_pairs labels, annotations; /* spec.machineTemplate.metadata */
    struct pl_str config_spec;           /* JSON; views of the text that was read */
    struct pl_str readiness_gates;
    struct pl_str deletion;
    bool etcd_managed;

    /* From discovery. A caller that remembers these may set them and not ask again. */
    struct pl_str infra_version;   /* "v1beta1" */
    struct pl_str template_plural; /* "dockermachinetemplates" */
    struct pl_str infra_plural;    /* "dockermachines" */
};

/* Reads the KubeadmControlPlane, as GET returned it in v1beta2, and works out the name. Strings are in
 * the arena or are views of `kcp`: both must outlive `r`. 0, or -1 with an error: not v1beta2, no record
 * of a remediation in progress, a naming template or a reference that cannot be used. */
int pl__replacement_read(struct pl_replacement *r, struct pl_arena *arena, struct pl_str kcp,
                         struct pl_str cluster_name, struct pl_error **err);

/* The same without a record, and so without a name: for whom only the template's kind is of interest. */
int pl__replacement_read_references(struct pl_replacement *r, struct pl_arena *arena,
                                    struct pl_str kcp, struct pl_str cluster_name,
                                    struct pl_error **err);

/* Where the infrastructure provider's API group is described: "/apis/<group>", an APIGroup. */
struct pl_str pl__replacement_group_path(const struct pl_replacement *r);

/* Takes the preferred version from it. 0, or -1 with an error. */
int pl__replacement_take_group(struct pl_replacement *r, struct pl_str api_group,
                               struct pl_error **err);

/* What that version serves: "/apis/<group>/<version>", an APIResourceList. */
struct pl_str pl__replacement_version_path(const struct pl_replacement *r);

/* Takes the plurals of the template's kind and of the machine's. 0, or -1 with an error. */
int pl__replacement_take_resources(struct pl_replacement *r, struct pl_str api_resource_list,
                                   struct pl_error **err);

/* The infrastructure machine template. The version and the plurals must be known. */
struct pl_str pl__replacement_template_path(const struct pl_replacement *r);

/* Where to POST one of the three, and where it then is (GET, DELETE). REPLACE_INFRA needs discovery. */
struct pl_str pl__replacement_collection_path(const struct pl_replacement *r,
                                              enum pl_replace_object object);
struct pl_str pl__replacement_object_path(const struct pl_replacement *r,
                                          enum pl_replace_object object);

/* The bodies, compact JSON in the arena. 0, or -1 with an error.
 *   infra:   `template_` as GET returned it
 *   machine: `failure_domain` as pl__replacement_failure_domain() has it; empty: none */
int pl__replacement_infra_body(const struct pl_replacement *r, struct pl_str template_,
                               struct pl_str *body, struct pl_error **err);
int pl__replacement_config_body(const struct pl_replacement *r, struct pl_str *body,
                                struct pl_error **err);
int pl__replacement_machine_body(const struct pl_replacement *r, struct pl_str failure_domain,
                                 struct pl_str *body, struct pl_error **err);

/* The control plane failure domain of the Cluster with the fewest of these Machines, the first listed
 * among equals; Machines that are being deleted count only between equals. Empty: it has none. */
struct pl_str pl__replacement_failure_domain(const struct pl_cluster *cluster,
                                             const struct pl_machine *const *machines,
                                             size_t machine_count);

/* What an object is that already has the name. */
enum pl_existing {
    EXISTING_OURS,     /* an earlier pass made it: go on with the next one */
    EXISTING_DELETING, /* ours, from a try that was cleaned up: wait until it is gone */
    EXISTING_FOREIGN,  /* somebody else's: never touch it, and say so */
};

/* Judges it as GET returned it. Ours is what the KubeadmControlPlane owns by uid, or the Machine of that
 * name controls, once it took it over; of a Machine its remediation-for must be this record, too.
 * 0, or -1 with an error when the text cannot be read. */
int pl__replacement_existing(const struct pl_replacement *r, enum pl_replace_object object,
                             struct pl_str text, enum pl_existing *existing, struct pl_error **err);

#endif
