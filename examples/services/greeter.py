"""A gRPC server without generated code: helloworld.Greeter/SayHello returns the bytes that it got.

FailingGreeter/SayHello fails. SERVICE_LOG: a file that gets a line for each call.
"""

import os
import signal
import sys
from concurrent import futures

import grpc

path = os.environ.get("SERVICE_LOG")
log = open(path, "a", buffering=1) if path else None


def say_hello(message, _context):
    if log:
        log.write("/helloworld.Greeter/SayHello\n")
    return message


def fail(_message, context):
    context.abort(grpc.StatusCode.UNAVAILABLE, "not today")


def handler(service, method):
    call = grpc.unary_unary_rpc_method_handler(method)
    return grpc.method_handlers_generic_handler(service, {"SayHello": call})


server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
server.add_generic_rpc_handlers(
    [handler("helloworld.Greeter", say_hello), handler("helloworld.FailingGreeter", fail)]
)
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
signal.signal(signal.SIGTERM, lambda *_: server.stop(1))
print(f"listening on 127.0.0.1:{sys.argv[1]}", flush=True)
server.wait_for_termination()
