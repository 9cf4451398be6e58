import multiprocessing

bind = "127.0.0.1:0"
workers = 2
timeout = 0
initialised = multiprocessing.Value("i", 0)


def post_worker_init(worker):
    """Says that it is ready once both workers are, so that neither is busy with its start."""
    with initialised.get_lock():
        initialised.value += 1
        if initialised.value == workers:
            print("ready", worker.sockets[0].sock.getsockname()[1], flush=True)
