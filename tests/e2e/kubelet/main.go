// A stand-in for the kubelets of a cluster, behind a real kube-apiserver: it knows one thing, the
// port-forward to a static Pod's port, and carries it to a TCP address that it is told.
//
//	GET /portForward/<namespace>/etcd-<node>?port=2379    WebSocket, v4.channel.k8s.io
//
// All Nodes name this one process as their kubelet. The certificate signs itself, which an API server
// without --kubelet-certificate-authority takes.
//
// The embedded API server has no kubelets behind it: it makes the WebSocket itself and connects to the Pod's port. For
// it there is a door: a line with the name of a Node gets a line with a port that takes one connection, which is
// the tunnel, or why there is none.
//
// Admin (plain HTTP on loopback):
//
//	POST /nodes {"<node>": {"target": "host:port", "fault": "", "delay": 0}}  replaces all of them
//	POST /cut[?node=<node>]   resets the tunnels that are open now
//	GET  /stats {"<node>": {"asked": n, "opened": n, "open": n, "in": bytes, "out": bytes, "trips": n}}
//
// Faults: "missing" (404, the Pod is not there), "refuse" (an error on the error channel, as if nobody
// listened in the Pod), "hang" (the request is never answered) and "freeze" (upgraded, but nothing is
// carried, also in tunnels that are open already). "delay" holds each piece back for that many
// milliseconds, each way. A round trip ("trips") is something from the Pod after something from the client.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const dialTimeout = 10 * time.Second

type node struct {
	Target string `json:"target"`
	Fault  string `json:"fault"`
	Delay  int    `json:"delay"`
}

type stats struct {
	Asked  int   `json:"asked"`
	Opened int   `json:"opened"`
	Open   int   `json:"open"`
	In     int64 `json:"in"`
	Out    int64 `json:"out"`
	Trips  int   `json:"trips"`
}

type kubelet struct {
	mu      sync.Mutex
	changed *sync.Cond
	nodes   map[string]node
	stats   map[string]*stats
	tunnels map[*tunnel]struct{}
}

// client is the other end of a tunnel: a WebSocket, or a connection that came through the door.
type client interface {
	read() ([]byte, error) // the next piece for the Pod
	write(piece []byte) error
	finish() // the Pod's side is over, and with it the only port
	connection() net.Conn
}

// tunnel is a client and the connection into the Pod behind it.
type tunnel struct {
	k      *kubelet
	node   string
	client client
	pod    net.Conn
	closed bool
	asking bool // the last piece came from the client
}

func (k *kubelet) of(name string) *stats {
	if k.stats[name] == nil {
		k.stats[name] = &stats{}
	}
	return k.stats[name]
}

func (k *kubelet) ask(name string) (node, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of(name).Asked++
	n, ok := k.nodes[name]
	return n, ok
}

// portForward serves one request of the API server.
func (k *kubelet) portForward(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/portForward/"), "/")
	port, err := strconv.ParseUint(r.URL.Query().Get("port"), 10, 16)
	if len(parts) != 2 || err != nil || port == 0 {
		http.Error(w, "you must specify at least 1 port", http.StatusBadRequest)
		return
	}
	name := strings.TrimPrefix(parts[1], "etcd-")
	n, known := k.ask(name)
	if !known || n.Fault == "missing" {
		http.Error(w, fmt.Sprintf("unable to forward port because pod is not found: %q", parts[1]), http.StatusNotFound)
		return
	}
	if n.Fault == "hang" {
		<-r.Context().Done()
		return
	}
	s, err := upgrade(w, r)
	if err != nil {
		return
	}
	// Both channels are announced before anybody has connected to the Pod.
	announced := binary.LittleEndian.AppendUint16(nil, uint16(port))
	for channel := byte(0); channel < 2; channel++ {
		if s.send(opBinary, []byte{channel}, announced) != nil {
			s.conn.Close()
			return
		}
	}
	pod, err := n.dial(port)
	if err != nil {
		s.fail(port, err)
		return
	}
	k.carry(name, s, pod)
}

// dial connects to the Pod, which everybody takes to listen on this port of loopback.
func (n node) dial(port uint64) (net.Conn, error) {
	if n.Fault == "refuse" {
		return nil, fmt.Errorf("dial tcp4 127.0.0.1:%d: connect: connection refused", port)
	}
	pod, err := net.DialTimeout("tcp", n.Target, dialTimeout)
	if err != nil {
		// Where the Pod's port really is, no kubelet would know.
		return nil, fmt.Errorf("%s", strings.Replace(err.Error(), n.Target, fmt.Sprintf("127.0.0.1:%d", port), 1))
	}
	return pod, nil
}

// carry is there as long as the tunnel is.
func (k *kubelet) carry(name string, c client, pod net.Conn) {
	t := &tunnel{k: k, node: name, client: c, pod: pod}
	pod.(*net.TCPConn).SetNoDelay(true)
	k.mu.Lock()
	k.tunnels[t] = struct{}{}
	k.of(t.node).Opened++
	k.of(t.node).Open++
	k.mu.Unlock()
	go t.fromPod()
	t.fromClient()
	t.end()
	k.mu.Lock()
	delete(k.tunnels, t)
	k.of(t.node).Open--
	k.mu.Unlock()
}

// end wakes and closes both sides; whoever still copies notices.
func (t *tunnel) end() {
	t.k.mu.Lock()
	t.closed = true
	t.k.changed.Broadcast()
	t.k.mu.Unlock()
	t.pod.Close()
	t.client.connection().Close()
}

// pass counts a piece and holds it back as the fault wants; false: the tunnel is over.
func (t *tunnel) pass(size int, fromClient bool) bool {
	k := t.k
	k.mu.Lock()
	n, known := k.nodes[t.node]
	for !t.closed && known && n.Fault == "freeze" {
		k.changed.Wait()
		n, known = k.nodes[t.node]
	}
	s := k.of(t.node)
	if fromClient {
		s.In += int64(size)
	} else {
		s.Out += int64(size)
		if t.asking {
			s.Trips++
		}
	}
	t.asking = fromClient
	closed := t.closed
	k.mu.Unlock()
	if n.Delay > 0 {
		time.Sleep(time.Duration(n.Delay) * time.Millisecond)
	}
	return !closed
}

func (t *tunnel) fromClient() {
	for {
		piece, err := t.client.read()
		if err != nil || !t.pass(len(piece), true) {
			return
		}
		if _, err := t.pod.Write(piece); err != nil {
			return
		}
	}
}

func (t *tunnel) fromPod() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := t.pod.Read(buffer)
		if n > 0 {
			if !t.pass(n, false) || t.client.write(buffer[:n]) != nil {
				break
			}
		}
		if err != nil {
			t.client.finish()
			break
		}
	}
	t.end()
}

// cut resets what is open now, of one node or of all.
func (k *kubelet) cut(name string) {
	k.mu.Lock()
	var all []*tunnel
	for t := range k.tunnels {
		if name == "" || t.node == name {
			all = append(all, t)
		}
	}
	k.mu.Unlock()
	for _, t := range all {
		conn := t.client.connection()
		if c, ok := conn.(*tls.Conn); ok {
			conn = c.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
			tcp.Close()
		}
		t.end()
	}
}

func (k *kubelet) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /nodes", func(w http.ResponseWriter, r *http.Request) {
		nodes := map[string]node{}
		if err := json.NewDecoder(r.Body).Decode(&nodes); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		k.mu.Lock()
		k.nodes = nodes
		k.changed.Broadcast()
		k.mu.Unlock()
	})
	mux.HandleFunc("POST /cut", func(w http.ResponseWriter, r *http.Request) { k.cut(r.URL.Query().Get("node")) })
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(k.stats)
	})
	return mux
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"kubelet"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func main() {
	listen := flag.String("listen", "127.0.0.1:10250", "where the API server finds the kubelet")
	door := flag.String("door", "127.0.0.1:10252", "where the embedded API server asks for a Node's Pod")
	admin := flag.String("admin", "127.0.0.1:10251", "where the rig finds the switches")
	flag.Parse()
	k := &kubelet{nodes: map[string]node{}, stats: map[string]*stats{}, tunnels: map[*tunnel]struct{}{}}
	k.changed = sync.NewCond(&k.mu)
	certificate, err := selfSigned()
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/", k.portForward)
	// HTTP/1.1 alone: there is no upgrade in HTTP/2.
	server := &http.Server{Addr: *listen, Handler: mux, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, ReadHeaderTimeout: 30 * time.Second}
	knocks, err := net.Listen("tcp", *door)
	if err != nil {
		log.Fatal(err)
	}
	go k.answerDoor(knocks)
	go func() { log.Fatal(http.ListenAndServe(*admin, k.admin())) }()
	log.Fatal(server.ListenAndServeTLS("", ""))
}
