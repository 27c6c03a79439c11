module example.org/customep

go 1.26.0

require github.com/execpoint/execpoint v0.1.0
