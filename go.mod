module github.com/execpoint/execpoint

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/ebitengine/purego v0.11.3
	github.com/google/go-cmp v0.7.0
	github.com/prometheus/procfs v0.23.0
	golang.org/x/sys v0.49.0
	pgregory.net/rapid v1.3.0
)

require golang.org/x/crypto v0.58.0

require github.com/dlclark/regexp2/v2 v2.12.0
