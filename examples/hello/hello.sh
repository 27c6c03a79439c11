#!/bin/sh
# Says hello and where it runs. The starter sets the _CONDOR_ variables.
echo "Hello, ${1:-nobody}!"
echo "machine:   $(uname -n)"
echo "slot:      ${_CONDOR_SLOT:-none}"
echo "directory: ${_CONDOR_SCRATCH_DIR:-$PWD}"
