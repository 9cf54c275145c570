#!/bin/sh
# For the images of PostgreSQL and RabbitMQ, which come from a registry: the same variables, and the programs of this machine.
set -e
chmod 1777 /tmp
case $1 in
postgres)
  data=/var/lib/postgresql/data
  cd /
  PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
  as="setpriv --reuid=postgres --regid=postgres --clear-groups"
  if [ ! -e "$data/PG_VERSION" ]; then
    chown postgres: "$data"
    chmod 0700 "$data"
    (umask 077 && printf %s "$POSTGRES_PASSWORD" >/tmp/password && chown postgres: /tmp/password)
    $as initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 -E UTF8 --locale=C.UTF-8 >/dev/null
    echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
    echo "CREATE DATABASE $POSTGRES_DB" | $as postgres --single -D "$data" postgres >/dev/null
  fi
  exec $as postgres -D "$data" -h 0.0.0.0 -k /tmp
  ;;
rabbitmq)
  export HOME=/var/lib/rabbitmq RABBITMQ_MNESIA_BASE=/var/lib/rabbitmq/mnesia RABBITMQ_LOG_BASE=/tmp RABBITMQ_LOGS=-
  export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +sbwt none" RABBITMQ_PID_FILE=/tmp/rabbitmq.pid
  chown rabbitmq: "$HOME"
  cd "$HOME"
  exec setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups /usr/lib/rabbitmq/bin/rabbitmq-server
  ;;
*) exec "$@" ;;
esac
