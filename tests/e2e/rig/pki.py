"""Certificates and tokens for the rig, made by the openssl command."""

import base64
import json
import os
import subprocess
import time


def _openssl(*args, data=None):
    done = subprocess.run(["openssl", *args], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def _read(path, mode="r"):
    with open(path, mode, encoding=None if "b" in mode else "ascii") as f:
        return f.read()


class Authority:
    """A CA. Client and serving certificates come with any validity, down to seconds.

    rsa: its key is RSA in PKCS#1, as Cluster API makes it; else elliptic in PKCS#8."""

    def __init__(self, directory, name="rig-ca", rsa=False):
        self.dir = directory
        os.makedirs(directory, exist_ok=True)
        self.cert = os.path.join(directory, "ca.crt")
        self.key = os.path.join(directory, "ca.key")
        self.serial = 0
        if rsa:
            _openssl("genrsa", "-traditional", "-out", self.key, "2048")
        else:
            _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.key)
        _openssl("req", "-x509", "-new", "-key", self.key, "-days", "3650", "-subj", f"/CN={name}", "-out", self.cert,
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature")

    def issue(self, name, subject, sans=(), seconds=365 * 86400, usage="clientAuth"):
        """Returns (certificate path, key path)."""
        self.serial += 1
        stem = os.path.join(self.dir, f"{name}-{self.serial}")
        key, csr, cert, conf = (stem + ending for ending in (".key", ".csr", ".crt", ".cnf"))
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", subject, "-keyout", key, "-out", csr)
        now = time.time()
        stamp = lambda t: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(t))
        extensions = ["basicConstraints=CA:false", "keyUsage=critical,digitalSignature,keyEncipherment",
                      f"extendedKeyUsage={usage}"]
        if sans:
            extensions.append("subjectAltName=" + ",".join(sans))
        with open(conf, "w", encoding="ascii") as f:
            f.write("[ca]\ndefault_ca=me\n[me]\ndatabase=%s.db\nserial=%s.serial\nnew_certs_dir=%s\n"
                    "default_md=sha256\npolicy=any\nrand_serial=yes\nunique_subject=no\n"
                    "copy_extensions=none\n[any]\ncommonName=supplied\norganizationName=optional\n"
                    "[ext]\n%s\n" % (stem, stem, self.dir, "\n".join(extensions)))
        open(stem + ".db", "w", encoding="ascii").close()
        _openssl("ca", "-batch", "-notext", "-config", conf, "-extensions", "ext", "-in", csr,
                 "-cert", self.cert, "-keyfile", self.key, "-out", cert,
                 "-startdate", stamp(now - 300), "-enddate", stamp(now + seconds))
        return cert, key

    def ca_data(self):
        return base64.b64encode(_read(self.cert, "rb")).decode()


def pem_data(path):
    return base64.b64encode(_read(path, "rb")).decode()


class TokenSigner:
    """The service-account key of an API server, and tokens signed by it with any expiry."""

    issuer = "https://kubernetes.default.svc"

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.key = os.path.join(directory, "sa.key")
        self.public = os.path.join(directory, "sa.pub")
        _openssl("genrsa", "-out", self.key, "2048")
        _openssl("rsa", "-in", self.key, "-pubout", "-out", self.public)

    def token(self, namespace, account, uid, seconds):
        """Valid for that many seconds by the server's judgement, which allows a minute of skew."""
        now = int(time.time())
        encode = lambda b: base64.urlsafe_b64encode(b).rstrip(b"=")
        # The server finds the key by this id: the hash of its public half.
        der = _openssl("rsa", "-in", self.key, "-pubout", "-outform", "DER")
        kid = encode(_openssl("dgst", "-sha256", "-binary", data=der)).decode()
        head = encode(json.dumps({"alg": "RS256", "kid": kid}).encode())
        body = encode(json.dumps({
            "iss": self.issuer, "aud": [self.issuer], "sub": f"system:serviceaccount:{namespace}:{account}",
            "iat": now - 120, "nbf": now - 120, "exp": now + seconds - 60,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}},
        }).encode())
        signature = encode(_openssl("dgst", "-sha256", "-sign", self.key, data=head + b"." + body))
        return b".".join((head, body, signature)).decode()
