/* The closed form of what offloads take (estimate.c): copies between GPU and host memory, reads and writes of drives,
 * and the step on the CPU. */
#include <math.h>

#include "search/case.h"

/* A pass beside copies of what its layers keep. Where those of the first n of L layers alone are copied, each of them
 * may lag behind or run ahead by L - n layers (plan/lower/offload.c): the longest of all layers, of all copies with a
 * layer before and one behind, and of layers and their copies in turn. head_s: of the head, beside which none is. */
static double beside_copies_s(const dts_case *k, const dts_rank_class *c, double pass_s, double head_s,
                              double copies_s) {
    const double some = (double)k->plan->job.offload->activation_layers;
    if (!(some > 0)) {
        return fmax(pass_s, copies_s);
    }
    const double each_s = (pass_s - head_s) / fmax(1, c->layers), apart = fmax(1, c->layers - some);
    const double turns = floor((c->layers - 1) / apart);
    const double in_turn_s = (c->layers - turns * apart) * each_s + turns * (each_s + copies_s / some);
    return fmax(pass_s, head_s + fmax(2 * each_s + copies_s, in_turn_s));
}

/* Passes beside the reads and writes of drives, each of which have a queue: forward reads parameters and writes
 * activations, backward reads both and writes gradients. With prefetch 0 parameters are read when they are asked for,
 * and activations hold up what comes behind them. */
static dts_case_passes beside_drives(const dts_case *k, const dts_case_offloads *o, double copied_B,
                                     dts_case_passes p) {
    const double out_s = copied_B * o->activations_write_s, in_s = copied_B * o->activations_read_s;
    const double written_s =
        dts_case_shards_gradients(k) && !dts_case_defers_reduction(k) ? o->write_s : 0; /* else in the step */
    if (k->plan->job.offload->prefetch == 0) {
        p.forward_s += o->read_s + out_s;
        p.input_s = fmax(p.input_s + o->read_s + in_s, written_s - p.weight_s);
        return p;
    }
    p.forward_s = fmax(p.forward_s, fmax(o->read_s, out_s));
    p.input_s = fmax(p.input_s, fmax(o->read_s + in_s, written_s) - p.weight_s);
    return p;
}

dts_case_passes dts_case_with_offloads(const dts_case *k, const dts_rank_class *c, const dts_case_offloads *o,
                                       double copied_B, const dts_schedule_method *method, dts_case_passes p) {
    const dts_frame *frame = k->frame;
    if ((k->offload & DTS_OFFLOAD_ACTIVATIONS) != 0) {
        const double copies_s = copied_B * frame->copy_s, head_s = c->head_forward_s;
        p.forward_s = beside_copies_s(k, c, p.forward_s, head_s, copies_s);
        /* a head's backward has two products for each of its forward */
        p.input_s = beside_copies_s(k, c, p.input_s + p.weight_s, 2 * head_s, copies_s) - p.weight_s;
    }
    if ((k->offload & DTS_OFFLOAD_PARAMETERS) != 0) {
        p.forward_s = fmax(p.forward_s, o->parameters_s);
        p.input_s = fmax(p.input_s, o->parameters_s - p.weight_s);
    }
    if (dts_offload_on_drives(k->offload) != 0) {
        p = beside_drives(k, o, copied_B, p);
    }
    if ((k->offload & DTS_OFFLOAD_GRADIENTS) != 0 && dts_case_shards_gradients(k) && !dts_case_defers_reduction(k)) {
        p.input_s = fmax(p.input_s, o->gradients_s - p.weight_s);
    }
    if (k->plan->pipeline > 1 && !dts_plan_overlaps_p2p(k->plan, method)) {
        p.forward_s += (double)frame->chunks * frame->send_s;
        p.input_s += (double)frame->chunks * frame->send_s;
    }
    return p;
}

double dts_case_cpu_step_s(const dts_case *k, double elements, double *host_s) {
    const dts_frame *frame = k->frame;
    const dts_storage *storage = &k->plan->storage;
    const int optimizer = dts_offload_target_of(k->offload, DTS_OFFLOAD_OPTIMIZER);
    const int gradients = dts_offload_target_of(k->offload, DTS_OFFLOAD_GRADIENTS);
    const int parameters = dts_offload_target_of(k->offload, DTS_OFFLOAD_PARAMETERS);
    const double out_s = gradients == DTS_OFFLOAD_NONE ? elements * storage->gradient_B * frame->copy_s : 0;
    const double in_s = parameters == DTS_OFFLOAD_NONE ? elements * storage->parameter_B * frame->copy_s : 0;
    *host_s = elements * frame->step.element_B * frame->cpu_step_s;
    const double longest_s = fmax(fmax(out_s, in_s), *host_s);
    if (dts_offload_on_drives(k->offload) == 0) {
        return longest_s;
    }
    const double parts = (double)(k->plan->job.model->layers / k->plan->pipeline + 1);
    const double states_B = optimizer == DTS_OFFLOAD_NVME ? storage->optimizer_B : 0;
    const double read_B = states_B + (gradients == DTS_OFFLOAD_NVME ? storage->gradient_B : 0);
    const double write_B = states_B + (parameters == DTS_OFFLOAD_NVME ? storage->parameter_B : 0);
    const double read_s = read_B > 0 ? elements * read_B * frame->read_s + parts * dts_drive_latency_s : 0;
    const double write_s = write_B > 0 ? elements * write_B * frame->write_s + parts * dts_drive_latency_s : 0;
    const double all_s = read_s + *host_s + write_s, most_s = fmax(read_s, fmax(*host_s, write_s));
    const bool in_turn = k->plan->job.offload->prefetch == 0;
    return fmax(longest_s, in_turn ? all_s : most_s + (all_s - most_s) / parts);
}

void dts_case_add_offloads(const dts_case *k, const dts_rank_class *c, double elements, dts_case_offloads *o) {
    const dts_frame *frame = k->frame;
    double parameters_B = elements * k->plan->storage.parameter_B;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        parameters_B += c->frozen_B[set] / dts_case_shards(k, set);
    }
    const double gradients_B = elements * k->plan->storage.gradient_B;
    o->parameters_s = parameters_B * frame->copy_s;
    o->gradients_s = gradients_B * frame->copy_s;
    o->host_B = dts_case_resting_B(k, c, DTS_OFFLOAD_CPU);
    const int drives = dts_offload_on_drives(k->offload);
    if (drives != 0) {
        const double waits_s = c->units * dts_drive_latency_s;
        o->drives_B = drives != DTS_OFFLOAD_ACTIVATIONS ? dts_case_resting_B(k, c, DTS_OFFLOAD_NVME) : 0;
        o->read_s = (drives & DTS_OFFLOAD_PARAMETERS) != 0 ? parameters_B * frame->read_s + waits_s : 0;
        o->write_s = (drives & DTS_OFFLOAD_GRADIENTS) != 0 ? gradients_B * frame->write_s + waits_s : 0;
        o->activations_read_s = (drives & DTS_OFFLOAD_ACTIVATIONS) != 0 ? frame->read_s : 0;
        o->activations_write_s = (drives & DTS_OFFLOAD_ACTIVATIONS) != 0 ? frame->write_s : 0;
    }
}
