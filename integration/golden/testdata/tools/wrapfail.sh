#!/bin/sh
# Copyright 2026 The execpoint Authors.
# SPDX-License-Identifier: Apache-2.0
echo "site says no" >"$_CONDOR_WRAPPER_ERROR_FILE"
exit 1
