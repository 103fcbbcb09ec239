// A TLS reverse proxy (HTTP/2 and 1.1) that stands in front of an API server and misbehaves on demand.
//
// Admin (plain HTTP on loopback):
//
//	POST /set   {"connection": "...", "rules": [...]}  replaces both
//	POST /cut   resets every connection that is open now
//	POST /reset drops the counts
//	GET  /stats {"requests": {"GET /path": n}, "codes": {"200": n}, "writes": [...], "open": n}
//
// Connection modes, for connections old and new alike: ok; refuse (no listener); reset (RST after
// accept); hang (accepted, nothing ever answered); freeze (bytes stop both ways, both ends stay
// open); drip (one byte each 50 ms towards the client).
//
// A rule {"method", "path" (regexps), "every": n, "count": n, ...} catches each n-th request that it
// matches, at most count times (0: no bound), and does one thing: "code" (answer with this and a
// Status body; "retryAfter" seconds, "plain" text body), "abort" (end the stream), "cutAfter" n
// bytes of the answer's body, "delay" milliseconds and then go on, "body" (with code: this body).
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

type rule struct {
	Method     string `json:"method"`
	Path       string `json:"path"`
	Every      int    `json:"every"`
	Count      int    `json:"count"`
	Code       int    `json:"code"`
	RetryAfter int    `json:"retryAfter"`
	Plain      bool   `json:"plain"`
	Body       string `json:"body"`
	Abort      bool   `json:"abort"`
	CutAfter   int64  `json:"cutAfter"`
	Delay      int    `json:"delay"`

	method, path *regexp.Regexp
	seen, done   int
}

type settings struct {
	Connection string  `json:"connection"`
	Rules      []*rule `json:"rules"`
}

type write struct {
	At     float64 `json:"at"`
	Method string  `json:"method"`
	Path   string  `json:"path"`
	Agent  string  `json:"agent"`
	Code   int     `json:"code"`
	Body   string  `json:"body,omitempty"`
}

type proxy struct {
	mu       sync.Mutex
	changed  *sync.Cond
	mode     string
	rules    []*rule
	conns    map[*conn]struct{}
	requests map[string]int
	codes    map[string]int
	writes   []write
	listener net.Listener
	address  string
	server   *http.Server
	tls      *tls.Config
}

// conn is a client's TCP connection; TLS runs above it.
type conn struct {
	net.Conn
	p      *proxy
	closed bool
}

func (c *conn) abort() {
	c.p.mu.Lock()
	c.closed = true
	c.p.changed.Broadcast()
	c.p.mu.Unlock()
	if t, ok := c.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Conn.Close()
}

// gate waits while the mode holds bytes back and says which mode let it through.
func (c *conn) gate() (string, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for !c.closed && (c.p.mode == "hang" || c.p.mode == "freeze") {
		c.p.changed.Wait()
	}
	if c.closed {
		return "", net.ErrClosed
	}
	return c.p.mode, nil
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if _, gateErr := c.gate(); gateErr != nil {
		return 0, gateErr
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	for i := 0; i < len(b); {
		mode, err := c.gate()
		if err != nil {
			return i, err
		}
		if mode != "drip" {
			n, err := c.Conn.Write(b[i:])
			return i + n, err
		}
		n, err := c.Conn.Write(b[i : i+1])
		i += n
		if err != nil {
			return i, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return len(b), nil
}

func (c *conn) Close() error {
	c.p.mu.Lock()
	delete(c.p.conns, c)
	c.closed = true
	c.p.changed.Broadcast()
	c.p.mu.Unlock()
	return c.Conn.Close()
}

type listener struct {
	net.Listener
	p *proxy
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, p: l.p}
		l.p.mu.Lock()
		reset := l.p.mode == "reset"
		if !reset {
			l.p.conns[c] = struct{}{}
		}
		l.p.mu.Unlock()
		if reset {
			c.abort()
			continue
		}
		return c, nil
	}
}

func (p *proxy) listen() {
	l, err := net.Listen("tcp", p.address)
	for i := 0; err != nil && i < 100; i++ {
		time.Sleep(20 * time.Millisecond)
		l, err = net.Listen("tcp", p.address)
	}
	if err != nil {
		log.Fatal(err)
	}
	p.listener = l
	go p.server.Serve(tls.NewListener(&listener{l, p}, p.tls))
}

func (p *proxy) cut() {
	p.mu.Lock()
	var all []*conn
	for c := range p.conns {
		all = append(all, c)
		delete(p.conns, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.abort()
	}
}

func (p *proxy) set(s settings) error {
	for _, r := range s.Rules {
		var err error
		if r.method, err = regexp.Compile("^(" + r.Method + ")$"); err != nil {
			return err
		}
		if r.Method == "" {
			r.method = regexp.MustCompile("")
		}
		if r.path, err = regexp.Compile(r.Path); err != nil {
			return err
		}
		if r.Every <= 0 {
			r.Every = 1
		}
	}
	switch s.Connection {
	case "":
		s.Connection = "ok"
	case "ok", "refuse", "reset", "hang", "freeze", "drip":
	default:
		return fmt.Errorf("unknown connection mode %q", s.Connection)
	}
	p.mu.Lock()
	before := p.mode
	p.mode = s.Connection
	p.rules = s.Rules
	p.changed.Broadcast()
	p.mu.Unlock()
	if s.Connection == "refuse" && before != "refuse" {
		p.listener.Close()
	}
	if before == "refuse" && s.Connection != "refuse" {
		p.listen()
	}
	if s.Connection == "refuse" || s.Connection == "reset" {
		p.cut()
	}
	return nil
}

// pick is the rule for this request, if one wants it.
func (p *proxy) pick(r *http.Request) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[r.Method+" "+r.URL.Path]++
	target := r.URL.RequestURI()
	for _, x := range p.rules {
		if !x.method.MatchString(r.Method) || !x.path.MatchString(target) || (x.Count > 0 && x.done >= x.Count) {
			continue
		}
		x.seen++
		if x.seen%x.Every != 0 {
			continue
		}
		x.done++
		return x
	}
	return nil
}

var reasons = map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
	422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}

func (x *rule) answer(w http.ResponseWriter) {
	if x.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(x.RetryAfter))
	}
	if x.Plain {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(x.Code)
		io.WriteString(w, "Too many requests, please try again later.")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(x.Code)
	if x.Body != "" {
		io.WriteString(w, x.Body)
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": "Failure", "message": "injected by the proxy", "reason": reasons[x.Code], "code": x.Code})
}

// cutter ends the stream after so many bytes of the answer's body.
type cutter struct {
	http.ResponseWriter
	left int64
	code int
}

func (c *cutter) WriteHeader(code int) { c.code = code; c.ResponseWriter.WriteHeader(code) }
func (c *cutter) Flush()               { c.ResponseWriter.(http.Flusher).Flush() }

// Unwrap lets the reverse proxy take the connection over, for port-forwards.
func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
func (c *cutter) Write(b []byte) (int, error) {
	if c.left < 0 {
		return c.ResponseWriter.Write(b)
	}
	if int64(len(b)) >= c.left {
		c.ResponseWriter.Write(b[:c.left])
		c.Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(b))
	return c.ResponseWriter.Write(b)
}

func (p *proxy) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := p.pick(r)
		out := &cutter{w, -1, 200}
		isWrite := r.Method != "GET" && r.Method != "HEAD"
		body := ""
		if isWrite && r.ContentLength < 64<<10 {
			data, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
			body = string(data)
			r.Body = io.NopCloser(strings.NewReader(body))
		}
		at := time.Now()
		defer func() {
			p.mu.Lock()
			p.codes[strconv.Itoa(out.code)]++
			if isWrite && len(p.writes) < 20000 {
				p.writes = append(p.writes, write{float64(at.UnixNano()) / 1e9, r.Method, r.URL.RequestURI(), r.UserAgent(), out.code, body})
			}
			p.mu.Unlock()
		}()
		if x != nil {
			if x.Delay > 0 {
				time.Sleep(time.Duration(x.Delay) * time.Millisecond)
			}
			if x.Abort {
				out.code = 0
				panic(http.ErrAbortHandler)
			}
			if x.Code > 0 {
				x.answer(out)
				return
			}
			if x.CutAfter > 0 {
				out.left = x.CutAfter
			}
		}
		next.ServeHTTP(out, r)
	})
}

func (p *proxy) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/set", func(w http.ResponseWriter, r *http.Request) {
		var s settings
		err := json.NewDecoder(r.Body).Decode(&s)
		if err == nil {
			err = p.set(s)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		io.WriteString(w, "{}")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) { p.cut(); io.WriteString(w, "{}") })
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		p.requests, p.codes, p.writes = map[string]int{}, map[string]int{}, nil
		p.mu.Unlock()
		io.WriteString(w, "{}")
	})
	mux.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]any{"requests": p.requests, "codes": p.codes, "writes": p.writes, "open": len(p.conns)})
	})
	return mux
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "TLS address")
	adminAddress := flag.String("admin", "127.0.0.1:0", "plain HTTP address of the admin endpoints")
	upstream := flag.String("upstream", "", "https URL of the server behind")
	caFile := flag.String("ca", "", "CA of the server behind")
	certFile := flag.String("cert", "", "serving certificate")
	keyFile := flag.String("key", "", "its key")
	flag.Parse()

	target, err := url.Parse(*upstream)
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(*caFile)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	cert, err := tls.LoadX509KeyPair(*certFile, *keyFile)
	if err != nil {
		log.Fatal(err)
	}

	// HTTP/1.1 behind: no limit of streams, and an aborted client ends its request there at once.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 64, DisableCompression: true,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			(&rule{Code: 503}).answer(w)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	p := &proxy{mode: "ok", conns: map[*conn]struct{}{}, requests: map[string]int{}, codes: map[string]int{}, address: *listen,
		tls: &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}}
	p.changed = sync.NewCond(&p.mu)
	p.server = &http.Server{Handler: p.handler(reverse), ErrorLog: log.New(io.Discard, "", 0), TLSConfig: p.tls}
	p.listen()
	log.Fatal(http.ListenAndServe(*adminAddress, p.admin()))
}
