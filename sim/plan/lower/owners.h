/* Whole tensors that belong to ranks (owners.c), and those that a step orthogonalises (muon.c). */
#ifndef DTS_PLAN_LOWER_OWNERS_H
#define DTS_PLAN_LOWER_OWNERS_H

#include "plan/plan.h"

/* Tensors that a step orthogonalises (muon.c). */
typedef struct dts_orthogonal {
    double tensors, elements;
    double matrices; /* of these tensors: a weight of queries, keys and values is three */
    double seconds;  /* of their kernels */
    double largest;  /* elements of one tensor */
} dts_orthogonal;

/* A tensor that is handed out whole: its elements, and what orthogonalising it takes. */
typedef struct dts_tensor_size {
    double elements, orthogonal_s, matrices;
} dts_tensor_size;

/* What a rank has of those. */
typedef struct dts_owner {
    int64_t tensors;
    dts_orthogonal orthogonal;
} dts_owner;

/* Who steps a set's tensors, where whole tensors belong to ranks (owners.c). */
typedef struct dts_owned {
    double *elements; /* [ranks] of those that own any */
    int64_t ranks;
    double most; /* of one rank, and how many tensors these are */
    int most_tensors;
    dts_orthogonal orthogonal; /* of the rank that orthogonalises longest */
} dts_owned;

/* How many matrices a tensor of an operator's weight is. */
int dts_orthogonal_matrices(const dts_plan *plan, const dts_operator *o);
/* How many tensors of one kind of an operator's parameters are handed out whole, each of size *out: matrices that are
 * orthogonalised, which take orthogonal_s together, or with all every tensor. */
int64_t dts_handed_out(const dts_plan *plan, const dts_operator *o, int tensor, double orthogonal_s, bool all,
                       dts_tensor_size *out);

/* Hands tensors of all these sizes, which it sorts, to out->ranks ranks; heap and owners have room for one each. */
void dts_hand_out_tensors(dts_tensor_size *all, size_t count, dts_owned *out, int64_t *heap, dts_owner *owners);
/* Adds times of b to a. */
void dts_orthogonal_add(dts_orthogonal *a, const dts_orthogonal *b, double times);
/* Kernels of tensors that are orthogonalised. */
double dts_orthogonal_launches(const dts_stack *stack, const dts_orthogonal *tensors);

#endif
