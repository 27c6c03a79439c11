#!/bin/sh
echo "Hello from $(id -un)@$(hostname): $1 ran me in a scratch directory of my own, $PWD"
