// A stand-in that plays many workload API servers, for bench, compare and bad neighbours: under
// /c/<n>/ each has control plane Nodes c<n>-node-<i> and their static Pods, listed and watched as a
// Kubernetes API server does it, over TLS with HTTP/2. It is no API server: it knows these two
// collections, reads no credentials and checks nothing.
//
//	GET /c/<n>/                                   200 (probes)
//	GET /c/<n>/api/v1/nodes[/name]                list, get, watch=true
//	GET /c/<n>/api/v1/namespaces/<ns>/pods[/name] list, get, watch=true
//	GET /c/<n>/apis..., /c/<n>/version            just enough discovery for client-go
//
// Watches take resourceVersion, allowWatchBookmarks, timeoutSeconds and, with -watchlist,
// sendInitialEvents (422 without). Label selectors: key, key=value, key in (a,b), joined by commas.
//
// Admin (plain HTTP): POST /pod?cluster=N&component=C&node=I&ready=false -> {"nanos": t}, the
// time just before the event goes out; GET /stats.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}

type event struct {
	version int64
	kind    string
	object  *object
}

type object struct {
	name   string
	labels map[string]string
	data   []byte // JSON with kind and apiVersion
}

// collection is all objects of one kind in one cluster, with the events of its life.
type collection struct {
	mu       sync.Mutex
	kind     string
	objects  map[string]*object
	history  []event
	floor    int64 // history below this is gone
	version  *int64
	watchers map[chan struct{}]struct{}
}

type cluster struct {
	version    int64
	nodes, pod *collection
}

func newCollection(kind string, version *int64) *collection {
	return &collection{kind: kind, objects: map[string]*object{}, version: version, watchers: map[chan struct{}]struct{}{}}
}

const historyLimit = 200

// put stores an object and tells the watchers; build gets the version to write into it.
func (c *collection) put(name string, labels map[string]string, kind string, build func(version int64) any) {
	c.mu.Lock()
	v := atomic.AddInt64(c.version, 1)
	data, err := json.Marshal(build(v))
	if err != nil {
		log.Fatal(err)
	}
	o := &object{name, labels, data}
	c.objects[name] = o
	c.history = append(c.history, event{v, kind, o})
	if len(c.history) > historyLimit {
		c.floor = c.history[len(c.history)-historyLimit-1].version
		c.history = append([]event(nil), c.history[len(c.history)-historyLimit:]...)
	}
	for w := range c.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	c.mu.Unlock()
}

type server struct {
	clusters  []*cluster
	machines  int
	watchlist bool
	started   string
	mu        sync.Mutex
	requests  map[string]int64
	watches   int64
}

func (s *server) node(n, i int, version int64) any {
	name := fmt.Sprintf("c%d-node-%d", n, i)
	return map[string]any{"kind": "Node", "apiVersion": "v1",
		"metadata": map[string]any{"name": name, "uid": "node-uid-" + name, "resourceVersion": strconv.FormatInt(version, 10), "creationTimestamp": s.started,
			"labels": map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": name}},
		"spec": map[string]any{"providerID": "dev:///" + name},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
			"lastHeartbeatTime": s.started, "lastTransitionTime": s.started}},
			"nodeInfo": map[string]any{"kubeletVersion": "v1.34.2", "osImage": "stand-in"}}}
}

func (s *server) pod(n, i int, component string, ready bool, version int64) any {
	node := fmt.Sprintf("c%d-node-%d", n, i)
	name := component + "-" + node
	flag := map[bool]string{true: "True", false: "False"}[ready]
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "lastProbeTime": nil, "lastTransitionTime": now}
	}
	return map[string]any{"kind": "Pod", "apiVersion": "v1",
		"metadata": map[string]any{"name": name, "namespace": "kube-system", "uid": "pod-uid-" + name, "resourceVersion": strconv.FormatInt(version, 10), "creationTimestamp": s.started,
			"labels":      map[string]string{"component": component, "tier": "control-plane"},
			"annotations": map[string]string{"kubernetes.io/config.mirror": "0123456789abcdef", "kubernetes.io/config.source": "file"}},
		"spec": map[string]any{"nodeName": node, "hostNetwork": true, "containers": []any{map[string]any{"name": component, "image": "registry.k8s.io/" + component}}},
		"status": map[string]any{"phase": "Running", "conditions": []any{condition("PodScheduled", "True"), condition("Initialized", "True"), condition("Ready", flag), condition("ContainersReady", flag)},
			"containerStatuses": []any{map[string]any{"name": component, "ready": ready, "restartCount": 0, "image": "registry.k8s.io/" + component, "imageID": "",
				"state": map[string]any{"running": map[string]any{"startedAt": s.started}}, "lastState": map[string]any{}}}}}
}

func (s *server) setPod(n, i int, component string, ready bool, kind string) {
	name := fmt.Sprintf("%s-c%d-node-%d", component, n, i)
	labels := map[string]string{"component": component, "tier": "control-plane"}
	s.clusters[n].pod.put(name, labels, kind, func(v int64) any { return s.pod(n, i, component, ready, v) })
}

func (s *server) fill(n int) {
	c := &cluster{version: 1000}
	c.nodes, c.pod = newCollection("Node", &c.version), newCollection("Pod", &c.version)
	s.clusters[n] = c
	for i := 0; i < s.machines; i++ {
		name := fmt.Sprintf("c%d-node-%d", n, i)
		labels := map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": name}
		c.nodes.put(name, labels, "ADDED", func(v int64) any { return s.node(n, i, v) })
		for _, component := range components {
			s.setPod(n, i, component, true, "ADDED")
		}
	}
	// As after a compaction: nobody may watch from before now.
	c.nodes.history, c.pod.history = nil, nil
	c.nodes.floor, c.pod.floor = c.version, c.version
}

// terms splits a label selector at the commas that are not inside parentheses.
func terms(selector string) []string {
	var out []string
	depth, start := 0, 0
	for i, c := range selector + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			if i > start {
				out = append(out, selector[start:i])
			}
			start = i + 1
		}
	}
	return out
}

func matches(selector string, labels map[string]string) bool {
	for _, term := range terms(selector) {
		if key, set, ok := strings.Cut(term, " in ("); ok {
			have, there := labels[key]
			if !there || !strings.Contains(","+strings.TrimSuffix(set, ")")+",", ","+have+",") {
				return false
			}
			continue
		}
		key, value, exact := strings.Cut(term, "=")
		have, ok := labels[key]
		if !ok || (exact && have != strings.TrimPrefix(value, "=")) {
			return false
		}
	}
	return true
}

func failure(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": message, "reason": reason, "code": code})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func (c *collection) list(w http.ResponseWriter, selector, name string) {
	c.mu.Lock()
	var names []string
	for n, o := range c.objects {
		if matches(selector, o.labels) && (name == "" || n == name) {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[`, c.kind, atomic.LoadInt64(c.version))
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(c.objects[n].data)
	}
	b.WriteString("]}\n")
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Write(b.Bytes())
}

func writeEvent(w io.Writer, kind string, data []byte) {
	fmt.Fprintf(w, `{"type":"%s","object":%s}`+"\n", kind, data)
}

func (c *collection) bookmark(w io.Writer, version int64, end bool) {
	annotations := ""
	if end {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"%s","apiVersion":"v1","metadata":{"resourceVersion":"%d","creationTimestamp":null%s}}}`+"\n", c.kind, version, annotations)
}

func (s *server) watch(c *collection, w http.ResponseWriter, r *http.Request, selector, name string) {
	q := r.URL.Query()
	initial := q.Get("sendInitialEvents") == "true"
	if q.Has("sendInitialEvents") && !s.watchlist {
		failure(w, 422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled`)
		return
	}
	from, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	bookmarks := q.Get("allowWatchBookmarks") == "true" || q.Get("allowWatchBookmarks") == "1"
	seconds, _ := strconv.Atoi(q.Get("timeoutSeconds"))
	if seconds <= 0 {
		seconds = 1800
	}
	timeout := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timeout.Stop()
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()

	wake := make(chan struct{}, 1)
	c.mu.Lock()
	c.watchers[wake] = struct{}{}
	atomic.AddInt64(&s.watches, 1)
	defer func() {
		c.mu.Lock()
		delete(c.watchers, wake)
		c.mu.Unlock()
		atomic.AddInt64(&s.watches, -1)
	}()
	w.Header().Set("Content-Type", "application/json")
	var b bytes.Buffer
	if from == 0 || initial {
		for _, o := range c.objects {
			if matches(selector, o.labels) && (name == "" || o.name == name) {
				writeEvent(&b, "ADDED", o.data)
			}
		}
		from = atomic.LoadInt64(c.version)
		if initial {
			c.bookmark(&b, from, true)
		}
	} else if from < c.floor {
		writeEvent(&b, "ERROR", []byte(fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: %d (%d)","reason":"Expired","code":410}`, from, c.floor)))
		c.mu.Unlock()
		w.Write(b.Bytes())
		return
	}
	c.mu.Unlock()
	flush := w.(http.Flusher)
	for {
		c.mu.Lock()
		first := sort.Search(len(c.history), func(i int) bool { return c.history[i].version > from })
		lost := from < c.floor
		for _, e := range c.history[first:] {
			if matches(selector, e.object.labels) && (name == "" || e.object.name == name) {
				writeEvent(&b, e.kind, e.object.data)
			}
			from = e.version
		}
		c.mu.Unlock()
		if lost {
			return
		}
		w.Write(b.Bytes())
		flush.Flush()
		b.Reset()
		select {
		case <-wake:
		case <-minute.C:
			if bookmarks {
				c.bookmark(&b, from, false)
			}
		case <-timeout.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "c" {
		failure(w, 404, "NotFound", "no such path")
		return
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 0 || n >= len(s.clusters) {
		failure(w, 404, "NotFound", "no such cluster")
		return
	}
	c, rest := s.clusters[n], parts[2:]
	q := r.URL.Query()
	var in *collection
	name := ""
	switch {
	case len(rest) == 0:
		answer(w, map[string]any{"paths": []string{"/api"}})
		return
	case rest[0] == "version":
		answer(w, map[string]any{"major": "1", "minor": "34", "gitVersion": "v1.34.2"})
		return
	case len(rest) == 1 && rest[0] == "api":
		answer(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}, "serverAddressByClientCIDRs": []any{}})
		return
	case len(rest) == 1 && rest[0] == "apis":
		answer(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
		return
	case len(rest) == 2 && rest[0] == "api":
		verbs := []string{"get", "list", "watch"}
		answer(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "nodes", "singularName": "node", "namespaced": false, "kind": "Node", "verbs": verbs},
			map[string]any{"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": verbs},
			map[string]any{"name": "namespaces", "singularName": "namespace", "namespaced": false, "kind": "Namespace", "verbs": verbs}}})
		return
	case len(rest) >= 3 && rest[2] == "nodes":
		in = c.nodes
		if len(rest) > 3 {
			name = rest[3]
		}
	case len(rest) >= 3 && rest[2] == "pods":
		in = c.pod
	case len(rest) >= 5 && rest[2] == "namespaces" && rest[4] == "pods":
		in = c.pod
		if len(rest) > 5 {
			name = rest[5]
		}
	}
	if in == nil || r.Method != "GET" {
		failure(w, 404, "NotFound", "the stand-in has no "+r.Method+" "+r.URL.Path)
		return
	}
	selected := strings.TrimPrefix(q.Get("fieldSelector"), "metadata.name=")
	switch {
	case name != "":
		in.mu.Lock()
		o := in.objects[name]
		in.mu.Unlock()
		if o == nil {
			failure(w, 404, "NotFound", fmt.Sprintf("%q not found", name))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(o.data)
	case q.Get("watch") == "true" || q.Get("watch") == "1":
		s.watch(in, w, r, q.Get("labelSelector"), selected)
	default:
		in.list(w, q.Get("labelSelector"), selected)
	}
}

func (s *server) count(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind := "other"
		switch {
		case r.URL.Query().Get("watch") != "":
			kind = "watch"
		case strings.Contains(r.URL.Path, "/api/v1/"):
			kind = "read"
		case strings.Count(strings.Trim(r.URL.Path, "/"), "/") == 1:
			kind = "probe"
		}
		s.mu.Lock()
		s.requests[kind+" "+r.Proto]++
		s.mu.Unlock()
		next(w, r)
	}
}

func (s *server) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/pod", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		n, err1 := strconv.Atoi(q.Get("cluster"))
		i, err2 := strconv.Atoi(q.Get("node"))
		ready, err3 := strconv.ParseBool(q.Get("ready"))
		if err1 != nil || err2 != nil || err3 != nil || n < 0 || n >= len(s.clusters) || i < 0 || i >= s.machines {
			http.Error(w, "bad query", 400)
			return
		}
		at := time.Now()
		s.setPod(n, i, q.Get("component"), ready, "MODIFIED")
		answer(w, map[string]any{"nanos": at.UnixNano()})
	})
	mux.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, map[string]any{"requests": s.requests, "watches": atomic.LoadInt64(&s.watches)})
	})
	return mux
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "TLS address")
	adminAddress := flag.String("admin", "127.0.0.1:0", "plain HTTP address of the admin endpoints")
	certFile := flag.String("cert", "", "serving certificate")
	keyFile := flag.String("key", "", "its key")
	clusters := flag.Int("clusters", 10, "how many workload clusters to play")
	machines := flag.Int("machines", 3, "control plane Nodes in each")
	watchlist := flag.Bool("watchlist", true, "know sendInitialEvents, as Kubernetes 1.34 does")
	flag.Parse()

	s := &server{clusters: make([]*cluster, *clusters), machines: *machines, watchlist: *watchlist,
		started: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), requests: map[string]int64{}}
	for n := range s.clusters {
		s.fill(n)
	}
	cert, err := tls.LoadX509KeyPair(*certFile, *keyFile)
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.ListenAndServe(*adminAddress, s.admin())) }()
	// As kube-apiserver: 100 streams to a connection.
	h := &http.Server{Addr: *listen, Handler: s.count(s.serve), ErrorLog: log.New(io.Discard, "", 0),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 100},
		TLSConfig: &tls.Config{ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}}
	log.Fatal(h.ListenAndServeTLS("", ""))
}
