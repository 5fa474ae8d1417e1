#include <Python.h>

extern "C" const char *llvm_version();
extern "C" int coalesce();

static PyObject *run(PyObject *, PyObject *) {
  return Py_BuildValue("is", coalesce(), llvm_version());
}
static PyMethodDef methods[] = {{"run", run, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "libtriton", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_libtriton() { return PyModule_Create(&module); }
