/* dtsim search --space soap: from a scenario to the answer. */
#ifndef DTS_TOOLS_DTSIM_SEARCH_SOAP_H
#define DTS_TOOLS_DTSIM_SEARCH_SOAP_H

#include <stdatomic.h>

#include "command.h"
#include "scenario/scenario.h"

typedef struct dts_soap_command {
    const dts_scenario *scenario;
    const char *method; /* "mcmc" or "exhaustive" */
    uint64_t seed;
    uint32_t chains;
    uint64_t proposals; /* of each chain */
    int threads;
    const atomic_bool *stop;
    const char *html_path; /* NULL: none */
    bool json, wall_time;
} dts_soap_command;

/* Searches and writes the answer; returns the exit code. */
int dts_search_soap(dts_tool *tool, const dts_soap_command *command);

#endif
