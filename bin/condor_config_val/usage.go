// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

const usage = `Usage: condor_config_val [OPTIONS] NAME...      print what NAME is set to
       condor_config_val [OPTIONS] -dump [PATTERN...]
       condor_config_val use CATEGORY[:NAME]    print a template, or list them
       condor_config_val -summary | -writeconfig FILE | -config

Values are expanded, unless one of these is given:
  -raw                 as the file has it
  -expand              expanded (with -dump, which shows the raw text otherwise)
  -default             the default of the table
  -evaluate            evaluated as an expression (with -snapshot)
  -macro[:path]        NAME is a text with macros; with path the result is cleaned
  -verbose             with file, line, template and raw text
  -info                and what the table of knobs knows
  -trace               print each value that a later line replaces
  -mixedcase           accepted; names are always printed as they were written

What is printed:
  -dump                all names, or those that match one of the patterns
  -used, -unused       of these only what was asked for, or only what was not
  -summary[:detected]  what files and environment change, by source
  -config              the sources that were read
  -writeconfig[:W,...] FILE
                       write the configuration. W: default, matches_default,
                       detected, environment, file, only, duplicate, upgrade,
                       sort, source, and comment before any of the first five
  -check-if CONDITION  test a condition as it may stand behind "if"

What is read:
  -root-config FILE    instead of what CONDOR_CONFIG or the usual places name
  -snapshot FILE       instead of files: what a running Execution Point wrote
  -subsystem NAME      as that daemon sees it (TOOL)
  -local-name NAME     and under that local name

  -owner, -tilde       the account HTCondor runs as, and its home
  -help, -version

Daemons are not asked over the network: -name, -address, -pool, -startd and the
other daemons, -set, -unset, -rset and -runset are refused.

Exit status: 0 done, 1 a name is not defined or something cannot be read, 2 the
file of -writeconfig cannot be written.
`
