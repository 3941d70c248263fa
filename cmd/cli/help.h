/* What a tool says about itself, from its option table. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cmd/cli/options.h"

/* Each prints to stdout and returns the exit status. */
int cli_print_help(const struct cli_tool *tool);
int cli_print_version(const struct cli_tool *tool);
int cli_print_table(const struct cli_tool *tool); /* --dump-options */

#endif
