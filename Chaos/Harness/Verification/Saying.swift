import Glibc

/// Prints a line and flushes the output, even if it goes to a file.
func say(_ line: String) {
    print(line)
    fflush(nil)
}
