#!/usr/bin/env python3
"""The other end of key-management method 192, by OpenSSL: it shares no code with ours.

peer.py client|server SUITE FOLDER CLIENT-PARAM SERVER-PARAM (Debian: python3-openssl)

Frames on standard input and output are a type, a length of 4 octets, and octets: M is a message of
key management, R a DTLS chunk with its padding, K the exported keys as text, E an error.
"""
import sys

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from OpenSSL import SSL

SIZES = {"TLS_AES_128_GCM_SHA256": 16, "TLS_AES_256_GCM_SHA384": 32, "TLS_CHACHA20_POLY1305_SHA256": 32}
EPOCH = 3


def put(kind, b):
    sys.stdout.buffer.write(kind + len(b).to_bytes(4, "big") + b)
    sys.stdout.buffer.flush()


def get():
    head = sys.stdin.buffer.read(5)
    if len(head) < 5:
        sys.exit(0)
    return head[:1], sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))


def connection(role, suite, folder):
    ctx = SSL.Context(SSL.TLS_METHOD)
    ctx.set_min_proto_version(SSL.TLS1_3_VERSION)
    assert SSL._lib.SSL_CTX_set_ciphersuites(ctx._context, suite.encode()) == 1
    ctx.use_certificate_file(folder + "/cert.pem")
    ctx.use_privatekey_file(folder + "/key.pem")
    ctx.load_verify_locations(folder + "/ca.pem")
    ctx.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda conn, cert, err, depth, ok: ok)
    conn = SSL.Connection(ctx, None)
    if role == "client":
        conn.set_tlsext_host_name(b"server.test")
        conn.set_connect_state()
    else:
        conn.set_accept_state()
    return conn


def flush(conn):
    try:
        records = conn.bio_read(1 << 20)
    except SSL.WantReadError:
        return
    put(b"M", bytes([EPOCH]) + records)


def keys(conn, params, size, direction, role):
    """draft-porfiri-tsvwg-sctp-dtls-handshake section 5.2"""
    return [conn.export_keying_material(b"EXPORTER_TLS_FOR_DTLS_IN_SCTP", n, bytes([direction, role, kind]) + params)
            for kind, n in [(0, size), (1, size), (2, 12)]]


def mask(suite, sn_key, sample):
    if "CHACHA20" in suite:
        return Cipher(algorithms.ChaCha20(sn_key, sample), None).encryptor().update(bytes(2))
    return Cipher(algorithms.AES(sn_key), modes.ECB()).encryptor().update(sample)[:2]


def seal(suite, key, sn_key, iv, content):
    aead = ChaCha20Poly1305(key) if "CHACHA20" in suite else AESGCM(key)
    header = bytes([0x28 | EPOCH & 3, 0, 0])  # number 0, so the nonce is the IV
    sealed = aead.encrypt(iv, content + b"\x17", header)
    record = header[:1] + mask(suite, sn_key, sealed[:16]) + sealed
    b = b"\x41\x00" + (5 + len(record)).to_bytes(2, "big") + b"\x00" + record
    return b + bytes(-len(b) % 4)


def open_record(suite, key, sn_key, iv, chunk):
    record = chunk[5:int.from_bytes(chunk[2:4], "big")]
    number = bytes(a ^ b for a, b in zip(record[1:3], mask(suite, sn_key, record[3:19])))
    nonce = (int.from_bytes(iv, "big") ^ int.from_bytes(number, "big")).to_bytes(12, "big")
    aead = ChaCha20Poly1305(key) if "CHACHA20" in suite else AESGCM(key)
    return aead.decrypt(nonce, record[3:], record[:1] + number)


def main():
    role, suite, folder = sys.argv[1:4]
    params = bytes.fromhex(sys.argv[4]) + bytes.fromhex(sys.argv[5])
    conn = connection(role, suite, folder)
    while True:
        try:
            conn.do_handshake()
            break
        except SSL.WantReadError:
            flush(conn)
            kind, message = get()
            assert kind == b"M" and message[0] == EPOCH, message
            conn.bio_write(message[1:])
        except SSL.Error as e:
            flush(conn)
            put(b"E", repr(e).encode())
            return
    size = SIZES[suite]
    sets = [keys(conn, params, size, direction, role) for direction in (0, 1) for role in (0, 1)]
    flush(conn)
    put(b"K", " ".join(v.hex() for s in sets for v in s).encode())
    own, peers = (sets[0], sets[2]) if role == "client" else (sets[2], sets[0])
    if role == "server":
        put(b"M", bytes([0x80 | EPOCH, 1]))
    else:
        while get() != (b"M", bytes([0x80 | EPOCH, 1])):
            pass
    put(b"R", seal(suite, *own, b"from OpenSSL"))
    while True:
        kind, b = get()
        if kind == b"R":
            put(b"R", open_record(suite, *peers, b))
            return


main()
