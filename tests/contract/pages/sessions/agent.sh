#!/bin/sh
# Stands in for an agent.
echo "working on: $*"
while read -r message; do echo "heard: $message"; done
