#!/bin/sh
# Copyright 2026 The execpoint Authors.
# SPDX-License-Identifier: Apache-2.0
: >ready
kill -SEGV $$
