package mission

import "testing"

func TestLoopbackPort(t *testing.T) {
	for model, want := range map[string]string{
		"http://127.0.0.1:4000": "127.0.0.1:4000", "http://localhost:65535/v": "localhost:65535", "http://[::1]:4000": "[::1]:4000",
		"": "", "https://127.0.0.1:4000": "", "http://host.example:4000": "", "http://127.0.0.1": "", "http://127.0.0.1:80": "", "http://127.0.0.1:70000": "", ":": "",
	} {
		got, port, err := LoopbackPort(model)
		if (err == nil) != (want != "") || got != want || err == nil && port < 1024 {
			t.Errorf("%q: %q, %d, %v", model, got, port, err)
		}
	}
}

func TestPortHere(t *testing.T) {
	for address, want := range map[string]uint16{"http://127.0.0.1:4000": 4000, "https://localhost:8443/x": 8443, "http://[::1]:90": 90, "https://gateway.example:443": 0,
		"http://10.0.0.1:80": 0, "https://localhost": 0, "": 0, "http://127.0.0.1:99999": 0, "::": 0} {
		if port, here := PortHere(address); port != want && here || here != (want != 0) {
			t.Errorf("PortHere(%q) = %d, %v", address, port, here)
		}
	}
}
