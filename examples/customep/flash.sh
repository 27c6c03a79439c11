#!/bin/sh
# The board that the slot was given.
echo "flashing $_CONDOR_AssignedBoards"
