#!/bin/sh
# Copyright 2026 The execpoint Authors.
# SPDX-License-Identifier: Apache-2.0
mkdir -p sub/deeper; echo deep >sub/deeper/file; echo dot >.dotfile; : >empty
echo new >new.txt; chmod 4755 new.txt; ln -s new.txt link.txt; ln new.txt hard.txt
echo changed...>>in2; mkfifo pipe
: >ready
i=0; while [ ! -e release ] && [ $i -lt 80 ]; do sleep 0.1; i=$((i+1)); done
