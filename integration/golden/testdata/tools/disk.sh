#!/bin/sh
# Copyright 2026 The execpoint Authors.
# SPDX-License-Identifier: Apache-2.0
head -c 8000000 /dev/zero >big
: >ready
i=0; while [ ! -e release ] && [ $i -lt 80 ]; do sleep 0.1; i=$((i+1)); done
