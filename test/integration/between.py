"""Stands between the ranks of a run that speak TCP, to spoil what they say.

Ranks other than 0 meet at an address of this module, which passes everything on to
rank 0 but names itself as the address of every rank's mailboxes. So each connection
between two mailboxes goes through here, and may be cut, fall silent or have a bit
turned, with nothing done to a process.
"""
import asyncio
import os
import struct
import threading

CHALLENGE, INTRODUCTION, WELCOME = 40, 56, 32  # bytes, of the doorkeeper


def loopback(job):
    """An address of this machine that only this process's job uses; the port is
    none that systems hand out."""
    pid = os.getpid()
    return (f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}",
            29600 + job)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Link:
    """One connection between two mailboxes: data goes forward, answers back."""

    def __init__(self, source, target, writers):
        self.source, self.target, self.writers = source, target, writers
        self.carried = [0, 0]  # bytes, forward and back
        self.spoil = None
        self.silent = False

    def pass_on(self, back, data):
        """What becomes of bytes that came."""
        self.carried[back] += len(data)
        if self.spoil and self.spoil[0] == back:
            bit = self.spoil[1] % (8 * len(data))
            data = bytearray(data)
            data[bit // 8] ^= 1 << bit % 8
            self.spoil = None
        return b"" if self.silent else data


class Between:
    """The connections of one run. `real`: where its rank 0 listens; `address`:
    where the others are to meet."""

    def __init__(self, real):
        self.real = real
        self.links = []
        self.doors = {}  # rank: (its own address, ours for it)
        self.tasks = set()
        self.servers = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.address = self.ask(self.listen(self.store))

    def ask(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result()

    def close(self):
        async def end():
            for server in self.servers:
                server.close()
            for task in list(self.tasks):
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
        self.ask(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    # Faults

    def cut(self, link):
        """Both ends are told, as by a switch that loses its state."""
        async def now():
            for writer in link.writers:
                writer.transport.abort()
        self.ask(now())

    def hush(self, link):
        """Nothing arrives any more, and nobody is told: an unplugged cable."""
        async def now():
            link.silent = True
        self.ask(now())

    def turn_bit(self, link, back, bit):
        """Of the bytes that come next, data (back: 0) or answers (1)."""
        async def now():
            link.spoil = (back, bit)
        self.ask(now())

    # Connections

    async def listen(self, serve):
        async def visitor(reader, writer):
            task = asyncio.current_task()
            self.tasks.add(task)
            try:
                await serve(reader, writer)
            except (OSError, asyncio.IncompleteReadError,
                    asyncio.CancelledError):
                pass  # an end is passed on by closing
            finally:
                writer.close()
                self.tasks.discard(task)
        server = await asyncio.start_server(visitor, "127.0.0.1", 0)
        self.servers.append(server)
        return "127.0.0.1:%d" % server.sockets[0].getsockname()[1]

    async def both(self, *pumps):
        """Until one of two directions has ended."""
        tasks = [asyncio.ensure_future(pump) for pump in pumps]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def greet(self, reader, writer, there, back):
        """Passes the doorkeeper's words on; returns who came."""
        writer.write(await there.readexactly(CHALLENGE))
        said = await reader.readexactly(INTRODUCTION)
        back.write(said)
        writer.write(await there.readexactly(WELCOME))
        return struct.unpack_from("<i", said, 12)[0]

    async def mailbox(self, target, address, reader, writer):
        there, back = await asyncio.open_connection(*address.rsplit(":", 1))
        try:
            source = await self.greet(reader, writer, there, back)
            link = Link(source, target, (writer, back))
            self.links.append(link)

            async def pump(come, go, direction):
                while data := await come.read(1 << 16):
                    go.write(link.pass_on(direction, data))
                    await go.drain()
            await self.both(pump(reader, back, 0), pump(there, writer, 1))
        finally:
            back.close()

    async def door(self, rank, address):
        """Our address for the mailboxes of a rank."""
        if rank not in self.doors:
            self.doors[rank] = await self.listen(
                lambda reader, writer: self.mailbox(rank, address, reader,
                                                    writer))
        return self.doors[rank]

    async def store(self, reader, writer):
        """The rendezvous: one request and its answer at a time."""
        host, port = self.real
        for _ in range(500):
            try:
                there, back = await asyncio.open_connection(host, port)
                break
            except ConnectionRefusedError:  # rank 0 does not listen yet
                await asyncio.sleep(0.02)
        else:
            return
        try:
            await self.greet(reader, writer, there, back)
            while True:
                request = await self.frame(reader)
                letter, key, value = self.parse(request)
                rank = int(key[4:]) if key.startswith("tcp/") else None
                if rank is not None and letter == b"s":
                    value = (await self.door(rank, value.decode())).encode()
                    name = key.encode()
                    request = (letter + struct.pack("<I", len(name)) + name +
                               value)
                self.send(back, request)
                answer = await self.frame(there)
                # What rank 0 says of itself did not come by here.
                if rank == 0 and letter == b"g" and answer[:1] == b"v":
                    answer = b"v" + (await self.door(
                        0, answer[1:].decode())).encode()
                self.send(writer, answer)
        finally:
            back.close()

    @staticmethod
    async def frame(reader):
        length, check = struct.unpack("<II", await reader.readexactly(8))
        frame = await reader.readexactly(length)
        assert crc32c(frame) == check
        return frame

    @staticmethod
    def send(writer, frame):
        writer.write(struct.pack("<II", len(frame), crc32c(frame)) + frame)

    @staticmethod
    def parse(request):
        length, = struct.unpack_from("<I", request, 1)
        return (request[:1], request[5:5 + length].decode(),
                request[5 + length:])
