/* Inside of config/: libyaml's syntax errors in words that say how to mend them. */
#ifndef DTS_CONFIG_SYNTAX_H
#define DTS_CONFIG_SYNTAX_H

#include <yaml.h>

#include "config/tree.h"

/* Reports the error that stopped the parser; returns its status. origin as in dts_tree_build(). */
dts_status dts_syntax_report(const yaml_parser_t *parser, const dts_source *source, const dts_place *origin,
                             dts_diag *diag);

#endif
