#!/usr/bin/env python3
"""Writes records.json: DTLS chunks made by the package cryptography, which shares no code with ours.

python3 records.py > records.json (Debian: python3-cryptography)
"""
import hashlib
import json

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

SUITES = {0x1301: (AESGCM, 16), 0x1302: (AESGCM, 32), 0x1303: (ChaCha20Poly1305, 32)}


def octets(name, n):
    return hashlib.sha256(name.encode()).digest()[:n]


def content(n):
    return bytes((7 * i + n) & 0xFF for i in range(n))


def mask(suite, sn_key, sample):
    """RFC 9147 section 4.2.3"""
    if suite == 0x1303:
        # The first 16 octets are the block counter, least significant octet first, and the nonce.
        return Cipher(algorithms.ChaCha20(sn_key, sample), None).encryptor().update(bytes(2))
    return Cipher(algorithms.AES(sn_key), modes.ECB()).encryptor().update(sample)[:2]


def chunk(suite, key, sn_key, iv, epoch, number, restart, text):
    """draft-ietf-tsvwg-sctp-dtls-chunk section 4.2, RFC 9147 section 4, RFC 8446 section 5.3"""
    nonce = (int.from_bytes(iv, "big") ^ number).to_bytes(12, "big")
    header = bytes([0b00101000 | epoch & 3]) + (number & 0xFFFF).to_bytes(2, "big")
    sealed = SUITES[suite][0](key).encrypt(nonce, text + b"\x17", header)
    header = header[:1] + bytes(a ^ b for a, b in zip(header[1:], mask(suite, sn_key, sealed[:16])))
    value = b"\x00" + header + sealed
    b = bytes([0x41, int(restart)]) + (4 + len(value)).to_bytes(2, "big") + value
    return b + bytes(-len(b) % 4)


def records():
    for suite, (_, size) in SUITES.items():
        highest = 2**48 - 1 if suite == 0x1303 else 23726565  # 2^24.5 records, RFC 9147 section 4.5.3
        for epoch, number, restart, n in [
            (3, 0, False, 4), (3, 1, False, 16), (4, 0xFFFF, False, 100), (5, 0x10000, False, 1452),
            (6, 0x1234567, False, 60), (7, 0, True, 200), (2**40 + 1, highest, False, 16384),
        ]:
            name = f"{suite:x} {epoch} {restart} "
            key, sn_key, iv = octets(name + "key", size), octets(name + "sn", size), octets(name + "iv", 12)
            b = chunk(suite, key, sn_key, iv, epoch, number, restart, content(n))
            yield {"suite": suite, "key": key.hex(), "snKey": sn_key.hex(), "iv": iv.hex(), "epoch": epoch,
                   "number": number, "restart": restart, "content": n,
                   "chunk": b.hex() if n <= 200 else "", "sha256": hashlib.sha256(b).hexdigest()}


print("[\n" + ",\n".join(json.dumps(r) for r in records()) + "\n]")
