#!/bin/bash
# Co-located: the control plane runs on a host of its own fleet, which takes no instances while the server excludes it. docs/layouts/co-located.md
set -e
. "$(dirname "$0")/machines.sh"

machine build-1 10.78.0.1
machine build-2 10.78.0.2
BERTH_SERVER_EXCLUDE_CONTROL_PLANE_HOSTS=true server build-1 10.78.0.1
operator build-1 https://10.78.0.1:7070
agent build-1 https://10.78.0.1:7070
agent build-2 https://10.78.0.1:7070
finish "$@"
