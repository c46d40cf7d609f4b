#!/usr/bin/env python3
"""Serves OpenStack Swift with its S3 interface on loopback, all four servers in this process.

usage: swift_server.py DIRECTORY [OBJECTS]

Lists give OBJECTS at a time, or 7.
Prints the port when it serves, one line, and serves until its standard input ends. Access key
test:tester, secret testing, path style, region us-east-1. What is stored goes below DIRECTORY, or
below another one where its file system has no extended attributes. Exits with 77 and a reason if
Swift is not installed, or no file system has them.
"""

import os
import sys
import tempfile


def skip(why):
    print(why, file=sys.stderr)
    sys.exit(77)


try:
    import eventlet
    eventlet.monkey_patch()
    from eventlet import wsgi
    from swift.common.ring import RingBuilder
    from swift.common.utils import NullLogger
    from swift.common.wsgi import SwiftHttpProtocol, loadapp
    import swift.account.server, swift.container.server, swift.obj.server  # noqa: E401, F401
    import swift.proxy.server  # noqa: F401
except ImportError as missing:
    skip(f'Swift is not installed: {missing}')

SERVERS = ('account', 'container', 'object')

COMMON = '''[DEFAULT]
swift_dir = {0}
devices = {0}/srv
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
recon_cache_path = {0}
log_level = CRITICAL
log_address = {0}/none
'''

PROXY = '''[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats bulk s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
max_bucket_listing = {1}
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:slo]
use = egg:swift#slo
'''


class Cache:
    """What the proxy keeps in memcached."""

    def __init__(self, app):
        self.app, self.kept = app, {}

    def __call__(self, env, start_response):
        env['swift.cache'] = self
        return self.app(env, start_response)

    def get(self, key, *_, **__):
        return self.kept.get(key)

    def set(self, key, value, *_, **__):
        self.kept[key] = value

    def delete(self, key, *_, **__):
        self.kept.pop(key, None)

    def incr(self, key, delta=1, *_, **__):
        self.kept[key] = self.kept.get(key, 0) + delta
        return self.kept[key]


def listen():
    return eventlet.listen(('127.0.0.1', 0), backlog=512)


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def make_ring(directory, server, port):
    """One partition server on one device."""
    builder = RingBuilder(1, 1, 1)
    builder.add_dev({'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': port, 'device': 'd1',
                     'weight': 1, 'replication_ip': '127.0.0.1', 'replication_port': port})
    builder.rebalance(seed=1)
    builder.get_ring().save(os.path.join(directory, f'{server}.ring.gz'))


def serve(socket, app):
    eventlet.spawn(wsgi.server, socket, app, log=NullLogger(), protocol=SwiftHttpProtocol,
                   log_output=False, capitalize_response_headers=False, debug=False)


def has_attributes(directory):
    try:
        with tempfile.NamedTemporaryFile(dir=directory) as probe:
            os.setxattr(probe.name, 'user.swift', b'x')
    except OSError:
        return False
    return True


def main(directory, listed):
    directory = os.path.abspath(directory)
    os.makedirs(directory, exist_ok=True)
    if has_attributes(directory):
        return serve_below(directory, listed)
    for other in ('/var/tmp', os.getcwd()):  # /tmp may be in memory
        if has_attributes(other):
            with tempfile.TemporaryDirectory(dir=other) as found:
                return serve_below(found, listed)
    skip(f'neither {directory} nor /var/tmp has extended attributes')


def serve_below(directory, listed):
    os.makedirs(os.path.join(directory, 'srv', 'd1'))
    write(os.path.join(directory, 'swift.conf'),
          '[swift-hash]\nswift_hash_path_suffix = test\n[storage-policy:0]\nname = only\n'
          'default = yes\n')
    # Swift reads it by a fixed name unless told otherwise.
    import swift.common.utils as utils
    utils.SWIFT_CONF_FILE = os.path.join(directory, 'swift.conf')
    utils.validate_hash_conf()
    from swift.common import storage_policy
    storage_policy.reload_storage_policies()

    sockets = {server: listen() for server in SERVERS}
    for server, socket in sockets.items():
        make_ring(directory, server, socket.getsockname()[1])
    for server, socket in sockets.items():
        conf = os.path.join(directory, f'{server}.conf')
        write(conf, COMMON.format(directory) +
              f'[pipeline:main]\npipeline = server\n[app:server]\nuse = egg:swift#{server}\n')
        serve(socket, loadapp(conf, global_conf={'log_level': 'CRITICAL'}))
    conf = os.path.join(directory, 'proxy.conf')
    write(conf, COMMON.format(directory) + PROXY.format(directory, listed))
    front = listen()
    serve(front, Cache(loadapp(conf, global_conf={'log_level': 'CRITICAL'})))
    print(front.getsockname()[1], flush=True)
    while True:
        eventlet.hubs.trampoline(0, read=True)
        if not os.read(0, 1):
            return


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else '7')
