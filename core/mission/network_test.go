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
