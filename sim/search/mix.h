/* Tensor degree, sharding and recomputation of single layers (parallelism.layers), by dynamic programming. */
#ifndef DTS_SEARCH_MIX_H
#define DTS_SEARCH_MIX_H

#include "search/layouts.h"

enum { DTS_MIX_CHOICES = 24 };

/* May layers of a layout differ: does plan/layers.c allow it, and has it closed forms here? */
bool dts_mix_may(const dts_search_context *c, const dts_candidate *candidate);

/* What layers of a layout are tried with, without saying which layers; the first is the layout itself. out has room for
 * DTS_MIX_CHOICES; returns how many there are. */
size_t dts_mix_choices(const dts_search_context *c, const dts_candidate *base, dts_layer_choice *out);

/* Adds candidates whose layers differ, made from the fastest layouts by closed form. */
dts_status dts_mix_layers(const dts_search_context *c, dts_top *list, dts_diag *diag);

/* Simulates neighbours of the best findings, one run of equal layers changed, shortened or extended, as long as the
 * best gets better and there are less than limit findings (mix_moves.c). */
dts_status dts_mix_move(dts_search_context *c, size_t limit, dts_diag *diag);

#endif
