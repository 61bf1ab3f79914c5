"""`python -m plumbline` is the program `plumbline`."""

import subprocess
import sys

from plumbline.program import path

sys.exit(subprocess.run([path(), *sys.argv[1:]], check=False).returncode)
