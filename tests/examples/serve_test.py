# serve_test.py PROGRAM PHOTOS FAIL_ALLOCATION: images are decoded in batches with a deadline. Hostile
# clients harm nobody, and a signal ends the server when it has answered.
import contextlib
import functools
import io
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

from PIL import Image

from notices import without_notices

PROGRAM = sys.argv[1]
PHOTOS = [photo.read_bytes() for photo in sorted(pathlib.Path(sys.argv[2]).glob("*.jpg"))[:4]]
FAIL_ALLOCATION = sys.argv[3]
HOUR = 3_600_000  # milliseconds
SANITIZERS = [name for name in [b"__asan", b"__tsan", b"__ubsan"]
              if name in pathlib.Path(PROGRAM).read_bytes()]


@functools.cache
def mean_colour(photo):
    image = Image.open(io.BytesIO(photo)).convert("RGB").resize((224, 224), Image.BILINEAR)
    pixels = list(image.getdata())
    return [sum(channel) // len(pixels) for channel in zip(*pixels)]


def frame(body):
    return struct.pack(">I", len(body)) + body


class Client:
    def __init__(self, port, buffer=None):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(("127.0.0.1", port))

    def send(self, body):
        self.socket.sendall(frame(body))

    # The answer; None at the end of the connection.
    def receive(self):
        head = self._receive(4)
        return self._receive(struct.unpack(">I", head)[0]).decode() if head else None

    def ask(self, body):
        self.send(body)
        return self.receive()

    def _receive(self, size):
        received = b""
        while len(received) < size:
            some = self.socket.recv(size - len(received))
            if not some:
                assert not received, "an answer is cut off"
                return received
            received += some
        return received

    def hang_up(self):
        self.socket.close()

    # Without a farewell: the server's next call is an error.
    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Serve(unittest.TestCase):
    def start(self, batch=8, within=1, timeout=HOUR, descriptors=None, environment={}):
        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        self.process = subprocess.Popen(
            [PROGRAM, "0", str(batch), str(within), str(timeout)], preexec_fn=limit,
            env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.kill)
        line = self.process.stdout.readline()
        self.assertRegex(line, r"^listening on 127\.0\.0\.1:\d+\n$")
        self.port = int(line.rpartition(":")[2])

    def kill(self):
        self.process.kill()
        self.process.communicate()

    # Ends the server, and returns how many requests it has decoded, in how many batches.
    def end(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        output, errors = self.process.communicate()
        self.assertEqual(self.process.returncode, 0, errors)
        self.assertEqual(without_notices(errors), "")
        words = output.split()
        return int(words[0]), int(words[3])

    def client(self, **options):
        client = Client(self.port, **options)
        self.addCleanup(client.hang_up)
        return client

    def assert_answer(self, photo, answer):
        self.assertRegex(answer, r"^ok \d+ \d+ \d+$")
        for channel, expected in zip(answer.split()[1:], mean_colour(photo)):
            self.assertAlmostEqual(int(channel), expected, delta=1)

    def assert_serves(self):
        self.assert_answer(PHOTOS[0], self.client().ask(PHOTOS[0]))

    def assert_serves_all(self, count):
        clients = self.clients_that_ask(count, PHOTOS[0])
        for client in clients:
            self.assert_answer(PHOTOS[0], client.receive())
            client.hang_up()

    # Each has sent a request, unless the server has hung up already.
    def clients_that_ask(self, count, body):
        clients = [self.client() for _ in range(count)]
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(body)
        return clients

    def test_a_connection_has_any_number_of_requests_answered_in_their_order(self):
        self.start()
        client = self.client()
        for photo in PHOTOS:
            client.send(photo)
        for photo in PHOTOS:
            self.assert_answer(photo, client.receive())
        client.socket.shutdown(socket.SHUT_WR)
        self.assertIsNone(client.receive())
        self.assertEqual(self.end()[0], len(PHOTOS))

    def test_full_batches_do_not_wait(self):
        self.start(batch=4, within=HOUR)
        for _ in range(2):
            clients = [self.client() for _ in range(4)]
            for client, photo in zip(clients, PHOTOS):
                client.send(photo)
            for client, photo in zip(clients, PHOTOS):
                self.assert_answer(photo, client.receive())
        self.assertEqual(self.end(), (8, 2))

    def test_a_batch_that_is_not_full_waits_until_its_time_is_over(self):
        self.start(batch=1000, within=20)
        self.assert_serves()
        self.assertEqual(self.end(), (1, 1))

    def test_bad_images_have_errors_and_spoil_no_batch(self):
        self.start(batch=4, within=HOUR)
        huge = b"P6 30000 30000 255\n"
        bodies = [PHOTOS[0], b"", b"no image", PHOTOS[1][:5000]] + [huge, PHOTOS[2], b"\xff\xd8", b""]
        clients = [self.client() for _ in bodies]
        for client, body in zip(clients, bodies):
            client.send(body)
        answers = [client.receive() for client in clients]
        for i, answer in enumerate(answers):
            if i in [0, 5]:
                self.assert_answer(bodies[i], answer)
            else:
                self.assertRegex(answer, "^error decode image: ")
        for client in clients[:4]:  # which stay
            client.send(PHOTOS[3])
        for client in clients[:4]:
            self.assert_answer(PHOTOS[3], client.receive())

    def test_a_request_that_is_too_large_is_refused_before_it_is_read(self):
        self.start()
        for size in [(16 << 20) + 1, 0xffffffff]:
            client = self.client()
            client.socket.sendall(struct.pack(">I", size))
            self.assertEqual(client.receive(), f"error receive a request: {size} bytes are more "
                             f"than {16 << 20}")
            self.assertIsNone(client.receive())
            self.assert_serves()

    def test_clients_that_hang_up_at_any_time_harm_nobody(self):
        self.start()
        whole = frame(PHOTOS[0])
        for end in [0, 1, 4, 5, len(whole) // 2, len(whole) - 1, len(whole)]:
            for leave in [Client.hang_up, Client.reset]:
                client = self.client()
                client.socket.sendall(whole[:end])
                leave(client)
                self.assert_serves()

    def test_a_client_that_sends_no_more_gets_its_answer(self):
        self.start()
        client = self.client()
        client.send(PHOTOS[0])
        client.socket.shutdown(socket.SHUT_WR)
        self.assert_answer(PHOTOS[0], client.receive())
        self.assertIsNone(client.receive())

    def test_clients_that_hang_up_before_their_batch_is_decoded_harm_nobody_in_it(self):
        self.start(batch=16, within=HOUR)
        for client in self.clients_that_ask(10, PHOTOS[1]):
            client.hang_up()
        for client in self.clients_that_ask(6, PHOTOS[0]):
            self.assert_answer(PHOTOS[0], client.receive())
        self.assertEqual(self.end(), (16, 1))

    # More than the server takes at a time.
    def test_clients_that_say_nothing_make_way_for_others(self):
        self.start(timeout=100)
        silent = [self.client() for _ in range(64)]
        self.assert_serves()
        for client in silent:
            self.assertIsNone(client.receive())

    def test_a_client_that_says_nothing_is_hung_up_on(self):
        self.start(timeout=100)
        self.assertIsNone(self.client().receive())

    def test_a_client_that_is_slow_to_send_is_told_and_hung_up_on(self):
        self.start(timeout=100)
        client = self.client()
        client.socket.sendall(frame(PHOTOS[0])[:1000])
        self.assertRegex(client.receive(), "^error receive a request: ")
        self.assertIsNone(client.receive())

    # It sends requests and takes no answers, until the buffers of both sockets are full.
    def test_a_client_that_takes_no_answers_is_hung_up_on(self):
        self.start(batch=1, timeout=100)
        client = self.client(buffer=4096)
        with self.assertRaises(OSError):
            while True:
                client.socket.sendall(frame(b"") * 1000)
        self.end()

    def test_more_clients_than_connections_wait(self):
        self.start()
        self.assert_serves_all(80)

    def test_a_thousand_clients_at_a_time_are_answered(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.start()
        for client in self.clients_that_ask(1000, b"no image"):
            self.assertRegex(client.receive(), "^error decode image: ")
            client.hang_up()
        self.assertEqual(self.end()[0], 1000)

    # A vector of requests, of 56 bytes each, grows to 64 of them for the 33rd one.
    @unittest.skipIf(SANITIZERS, "sanitizers have an operator new of their own")
    def test_if_batches_can_no_longer_be_filled_all_clients_have_errors_and_the_server_fails(self):
        self.start(batch=64, within=HOUR, environment={
            "LD_PRELOAD": FAIL_ALLOCATION, "FAIL_ALLOCATION_OF": str(64 * 56)})
        answers = []
        for client in self.clients_that_ask(64, b""):
            with contextlib.suppress(OSError):
                answers.append(client.receive())
        answers = [answer for answer in answers if answer]  # the others were hung up on
        self.assertGreaterEqual(len(answers), 33)
        for answer in answers:
            self.assertRegex(answer, "^error (wait for a promise|push to a channel|receive a request)")
        _, errors = self.process.communicate()
        self.assertEqual((self.process.returncode, errors), (1, "serve: std::bad_alloc\n"))

    # UBSan needs descriptors to look at types, and finds errors where there are none left.
    @unittest.skipIf(b"__ubsan" in SANITIZERS, "it is built with UBSan")
    def test_more_clients_than_descriptors_wait(self):
        self.start(descriptors=40)
        self.assert_serves_all(60)

    def test_a_signal_ends_it_whatever_clients_do(self):
        for by in [signal.SIGTERM, signal.SIGINT]:
            self.start(batch=1000, within=HOUR)
            idle, half, waiting = self.client(), self.client(), self.client()
            half.socket.sendall(frame(PHOTOS[0])[:1000])
            waiting.send(PHOTOS[0])
            self.end(by)
            with contextlib.suppress(ConnectionResetError):  # if it had not been accepted
                self.assertIsNone(idle.receive())

    def test_a_request_of_which_not_even_the_size_has_come_is_none(self):
        self.start()
        client = self.client()
        client.socket.sendall(b"\0\0\0")
        client.socket.shutdown(socket.SHUT_WR)
        self.assertIsNone(client.receive())
        self.assertEqual(self.end(), (0, 0))

    # Clients never see an answer that is cut off, and get the answers of all requests that were
    # decoded.
    def test_a_signal_loses_no_answer(self):
        draw = random.Random(self.seed)
        for _ in range(5):
            self.start(batch=draw.randint(1, 5), within=draw.randint(0, 3))
            answered, some = [], threading.Semaphore(0)

            def ask_on():
                client = Client(self.port)
                try:
                    while (answer := client.ask(PHOTOS[0])) is not None:
                        answered.append(answer)
                        some.release()
                except OSError:  # while it sends
                    pass
                client.hang_up()

            threads = [threading.Thread(target=ask_on) for _ in range(8)]
            for thread in threads:
                thread.start()
            for _ in range(draw.randint(1, 40)):
                some.acquire()
            requests, _ = self.end()
            for thread in threads:
                thread.join()
            decoded = [answer for answer in answered if answer.startswith("ok ")]
            self.assertEqual(len(decoded), requests)

    def test_an_unusable_port_is_an_error(self):
        self.start()
        program = subprocess.run([PROGRAM, str(self.port)], capture_output=True, text=True)
        self.assertEqual(program.returncode, 1)
        self.assertIn(f"serve: listen on port {self.port}: Address already in use", program.stderr)

    def test_without_arguments_it_says_how_to_use_it(self):
        for arguments in [[], ["x" * 9, "0"], ["65536"], ["0", "8", "-1"]]:
            program = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
            self.assertEqual(program.returncode, 2)
            self.assertIn("usage: serve PORT", program.stderr)


if __name__ == "__main__":
    Serve.seed = random.randrange(2**32)
    print("seed", Serve.seed)
    unittest.main(argv=sys.argv[:1])
