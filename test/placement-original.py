# OpenStack Placement as Debian packages it, on a database of its own: reads cases of providers and questions as JSON, and
# writes its answers, case by case, as [status, body].

import json
import sys
import tempfile

import webob
from oslo_config import cfg
from placement import conf, deploy


def application(directory):
    connection = f'sqlite:///{directory}/placement.db'
    path = f'{directory}/placement.conf'
    # It reads the connection from a file, and makes the tables on the one that is set here.
    with open(path, 'w') as file:
        file.write(f'[placement_database]\nconnection = {connection}\n')
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config([], default_config_files=[path])
    config.set_override('auth_strategy', 'noauth2', group='api')
    config.set_override('connection', connection, group='placement_database')
    config.set_override('sync_on_startup', True, group='placement_database')
    return deploy.loadapp(config)


def ask(app, method, path, version=39, body=None):
    request = webob.Request.blank(path, method=method, headers={
        'x-auth-token': 'admin', 'accept': 'application/json', 'openstack-api-version': f'placement 1.{version}'})
    if body is not None:
        request.headers['content-type'] = 'application/json'
        request.body = json.dumps(body).encode()
    response = request.get_response(app)
    return [response.status_int, json.loads(response.body) if response.body else None]


def answers(app, case):
    for method, path, body in case['setup']:
        status, answer = ask(app, method, path, body=body)
        if status >= 300:
            raise RuntimeError(f'{method} {path}: {status} {answer}')
    found = [ask(app, 'GET', path, version) for version, path in case['questions']]
    for method, path, _ in case['teardown']:
        ask(app, method, path)
    return found


with tempfile.TemporaryDirectory() as directory:
    app = application(directory)
    print(json.dumps([answers(app, case) for case in json.load(sys.stdin)]))
