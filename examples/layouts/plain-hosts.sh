#!/bin/bash
# Plain hosts: one machine has the control plane with SQLite, the others are hosts. docs/layouts/plain-hosts.md
set -e
. "$(dirname "$0")/machines.sh"

machine control 10.78.0.1
server control 10.78.0.1
operator control https://10.78.0.1:7070
machine build-1 10.78.0.11
machine build-2 10.78.0.12
agent build-1 https://10.78.0.1:7070
agent build-2 https://10.78.0.1:7070
finish "$@"
