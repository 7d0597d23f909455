module example.org/halcyon

go 1.19
