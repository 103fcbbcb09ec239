// hostile plays an API server that does everything wrong, for kube_client_test.c.
//
//	hostile DIRECTORY
//
// It listens on free ports of 127.0.0.1, writes certificates and, last, the file "ports" (NAME ADDRESS
// a line) into the directory, and serves until it is killed.
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var directory string

// --- certificates ---------------------------------------------------------------------------------

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var serial int64 = 1

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func writePEM(name, kind string, der []byte) {
	file := filepath.Join(directory, name)
	check(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func newAuthority(name string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	cert, err := x509.ParseCertificate(der)
	check(err)
	writePEM(name+".pem", "CERTIFICATE", der)
	return &authority{cert, key}
}

func (a *authority) issue(file, commonName string, hours int, names ...string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Duration(hours) * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	check(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	check(err)
	if file != "" {
		writePEM(file+".pem", "CERTIFICATE", der)
		writePEM(file+"-key.pem", "PRIVATE KEY", keyDER)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// --- connections that can be frozen ----------------------------------------------------------------

// conn numbers connections and can stop to read and write, as a dead machine behind a load balancer
// that still acknowledges would.
type conn struct {
	net.Conn
	number int64
	frozen atomic.Bool
}

var connCount, connOpen, connNumber atomic.Int64

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil && c.frozen.Load() {
		n, err = c.Conn.Read(b)
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if c.frozen.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	connOpen.Add(-1)
	return c.Conn.Close()
}

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	connCount.Add(1)
	connOpen.Add(1)
	return &conn{Conn: c, number: connNumber.Add(1)}, nil
}

type connKey struct{}

func connContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// --- handlers --------------------------------------------------------------------------------------

func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	client := ""
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		client = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	sni := ""
	if r.TLS != nil {
		sni = r.TLS.ServerName
	}
	json.NewEncoder(w).Encode(map[string]any{
		"method": r.Method, "path": r.URL.Path, "query": r.URL.RawQuery, "proto": r.Proto, "host": r.Host,
		"headers": r.Header, "body": string(body), "client": client, "sni": sni, "conn": connOf(r).number,
	})
}

// token answers 401 unless the bearer token is what the file "want-token" holds.
func token(w http.ResponseWriter, r *http.Request) {
	want, _ := os.ReadFile(filepath.Join(directory, "want-token"))
	if r.Header.Get("Authorization") != "Bearer "+strings.TrimSpace(string(want)) {
		w.Header().Set("Connection", "close") // as kube-apiserver does: GOAWAY
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	echo(w, r)
}

func big1(w http.ResponseWriter, r *http.Request) {
	size := number(r, "n", 1024*1024)
	var out io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && r.URL.Query().Get("gzip") != "" {
		w.Header().Set("Content-Encoding", "gzip")
		if r.URL.Query().Get("gzip") == "broken" {
			w.Write([]byte("this is not gzip at all"))
			return
		}
		zip := gzip.NewWriter(w)
		defer zip.Close()
		out = zip
	}
	line := []byte(strings.Repeat("0123456789abcde\n", 64))
	for size > 0 {
		n := min(size, len(line))
		if _, err := out.Write(line[:n]); err != nil {
			return
		}
		size -= n
	}
}

// watch sends n lines, one every ms milliseconds, then ends as ?end= says: close (the default), hang,
// abort or cut.
func watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	flush := func() { w.(http.Flusher).Flush() }
	flush()
	for i := range number(r, "n", 3) {
		fmt.Fprintf(w, "{\"type\":\"ADDED\",\"i\":%d,\"conn\":%d}\n", i, connOf(r).number)
		flush()
		select {
		case <-time.After(time.Duration(number(r, "ms", 1)) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
	switch r.URL.Query().Get("end") {
	case "hang":
		<-r.Context().Done()
	case "abort":
		panic(http.ErrAbortHandler)
	case "cut":
		connOf(r).Conn.Close()
	}
}

// events sends one event for each size in "bytes", and then nothing more. Byte i of an event of n bytes
// is 'a' + (i+n)%23; the last is a newline.
func events(w http.ResponseWriter, r *http.Request) {
	for _, text := range strings.Split(r.URL.Query().Get("bytes"), ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || size > 16<<20 {
			http.Error(w, "bytes: "+text, http.StatusBadRequest)
			return
		}
		event := make([]byte, size)
		for i := range event {
			event[i] = byte('a' + (i+size)%23)
		}
		event[size-1] = '\n'
		w.Write(event)
		w.(http.Flusher).Flush()
		time.Sleep(5 * time.Millisecond)
	}
	<-r.Context().Done()
}

func drip(w http.ResponseWriter, r *http.Request) {
	for range number(r, "n", 10) {
		w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		time.Sleep(time.Duration(number(r, "ms", 20)) * time.Millisecond)
	}
}

var frozen []*conn
var frozenMutex sync.Mutex

func routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/version", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"major":"1"}`) })
	mux.HandleFunc("/", echo)
	mux.HandleFunc("/token", token)
	mux.HandleFunc("/big", big1)
	mux.HandleFunc("/watch", watch)
	mux.HandleFunc("/events", events)
	mux.HandleFunc("/drip", drip)
	mux.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/abort", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) { connOf(r).Conn.Close() })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(number(r, "ms", 100)) * time.Millisecond)
		fmt.Fprint(w, "slow")
	})
	mux.HandleFunc("/goaway", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // Go's server makes a GOAWAY of it
		echo(w, r)
	})
	mux.HandleFunc("/freeze", func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r)
		frozenMutex.Lock()
		frozen = append(frozen, c) // its end is not to be noticed by garbage collection
		frozenMutex.Unlock()
		c.frozen.Store(true)
	})
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		http.Error(w, "so it is", number(r, "code", 500))
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1/stolen", http.StatusFound)
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		value := strings.Repeat("h", 1000)
		for i := range number(r, "kb", 10) {
			w.Header().Set(fmt.Sprintf("X-Filler-%d", i), value)
		}
		if n := number(r, "one", 0); n > 0 {
			w.Header().Set("X-Long", strings.Repeat("h", n*1000))
		}
		fmt.Fprint(w, "headers")
	})
	mux.HandleFunc("/conns", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d %d", connOpen.Load(), connCount.Load())
	})
	return mux
}

// --- listeners -------------------------------------------------------------------------------------

var ports []string

func listen(name string) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ports = append(ports, name+" "+l.Addr().String())
	return l
}

type quiet struct{}

func (quiet) Write(b []byte) (int, error) { return len(b), nil }

func serve(name string, config *tls.Config, streams int) {
	server := &http.Server{
		Handler: routes(), ConnContext: connContext, ErrorLog: log.New(quiet{}, "", 0),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streams}, MaxHeaderBytes: 1 << 20,
	}
	l := listener{listen(name)}
	if config == nil {
		go server.Serve(l)
		return
	}
	server.TLSConfig = config
	if config.NextProtos != nil {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	go server.ServeTLS(l, "", "")
}

func serveRaw(name string, handle func(net.Conn)) {
	l := listen(name)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
}

// proxy is an HTTP proxy that knows CONNECT only, and counts.
func proxy(c net.Conn) {
	defer c.Close()
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil || request.Method != http.MethodConnect {
		return
	}
	up, err := net.Dial("tcp", request.Host)
	if err != nil {
		fmt.Fprint(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer up.Close()
	os.WriteFile(filepath.Join(directory, "proxied"), []byte(request.Host), 0o600)
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
	go io.Copy(up, c)
	io.Copy(c, up)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: hostile DIRECTORY")
	}
	directory = os.Args[1]
	ca, other := newAuthority("ca"), newAuthority("other-ca")
	good := ca.issue("", "good", 24, "127.0.0.1", "localhost", "kube.test")
	ca.issue("client", "client-one", 24)
	ca.issue("client2", "client-two", 24)
	other.issue("stranger", "stranger", 24)
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	only := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }

	main := only(good)
	main.ClientAuth, main.ClientCAs = tls.VerifyClientCertIfGiven, clients
	serve("main", main, 100)
	serve("few", only(good), 5)
	h1 := only(good)
	h1.NextProtos = []string{"http/1.1"}
	serve("http1", h1, 100)
	serve("plain", nil, 100)
	serve("wrongca", only(other.issue("", "wrong", 24, "127.0.0.1")), 100)
	serve("wrongname", only(ca.issue("", "wrong", 24, "elsewhere.test")), 100)
	serve("expired", only(ca.issue("", "expired", -24, "127.0.0.1")), 100)
	mutual := only(good)
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, clients
	serve("mutual", mutual, 100)

	serveRaw("mute", func(c net.Conn) { io.Copy(io.Discard, c) })
	serveRaw("closer", func(c net.Conn) { c.Close() })
	serveRaw("resetter", func(c net.Conn) {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	serveRaw("garbage", func(c net.Conn) {
		noise := make([]byte, 4096)
		rand.Read(noise)
		c.Write(noise)
		io.Copy(io.Discard, c)
	})
	serveRaw("plaingarbage", func(c net.Conn) {
		bufio.NewReader(c).ReadString('\n')
		c.Write([]byte("220 mail.example.test ESMTP, not what you want\r\n"))
		c.Close()
	})
	serveRaw("halfheader", func(c net.Conn) {
		bufio.NewReader(c).ReadString('\n')
		c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Le"))
		c.Close()
	})
	serveRaw("proxy", proxy)
	l := listen("refused")
	l.Close()

	temporary := filepath.Join(directory, "ports.new")
	check(os.WriteFile(temporary, []byte(strings.Join(ports, "\n")+"\n"), 0o600))
	check(os.Rename(temporary, filepath.Join(directory, "ports")))
	select {}
}
